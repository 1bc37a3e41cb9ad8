import type { Policy } from '../../model/policy.ts'
import type { TargetStatus } from '../../model/target.ts'
import { toRunWith, type BooksRow, type RunFactsRow, type TargetRow } from '../rows.ts'
import type { LiveRun, OnlyTarget, Store } from '../store.ts'
import { ms, sql, type Database } from './database.ts'
import { BOOKS, LIVE } from './runs.ts'

// Sorted before anything is joined: rows are read here while the server still makes the next ones. As one JSON document
// they would take it twice as long. The one target is asked for by key, which leads along the index: where most targets
// belong to one run, the planner would otherwise read the table until it meets it.
export const LIVE_RUNS = sql(
  'runs:all-live',
  /* sql */ `
  SELECT r.id, r.source, r.kind, r.status, r.policy::text AS policy, r.progress_done, r.progress_total,
         r.resumes, r.retries, r.retry_of, ${ms('r.created_at')} AS created_at,
         ${ms('r.started_at')} AS started_at, ${ms('r.resumed_at')} AS resumed_at,
         ${ms('r.reopened_at')} AS reopened_at, ${ms('r.planned_at')} AS planned_at, books.*,
         t.id AS target_id, t.status AS target_status, t.worker_id, t.seq, t.page, t.page_target,
         t.next_url, t.last_item_id, t.cursor, t.errors, t.crashes_alone,
         ${ms('t.last_activity_at')} AS target_last_activity_at
    FROM (SELECT * FROM unstuck.run WHERE status IN ${LIVE} ORDER BY id DESC) AS r
    ${BOOKS}
    LEFT JOIN LATERAL (
      SELECT * FROM unstuck.target WHERE run_id = r.id AND r.kind = 'single' ORDER BY key LIMIT 1
    ) AS t ON true
   ORDER BY r.id DESC
`,
)

type FactsRow = Omit<RunFactsRow, 'policy' | 'owner' | 'finished_at' | 'error'> & {
  policy: string
}
type OnlyTargetRow = Pick<
  TargetRow,
  | 'worker_id'
  | 'seq'
  | 'page'
  | 'page_target'
  | 'next_url'
  | 'last_item_id'
  | 'cursor'
  | 'errors'
  | 'crashes_alone'
> & {
  target_id: string | null
  target_status: TargetStatus
  target_last_activity_at: number
}
type Row = FactsRow & BooksRow & OnlyTargetRow

const UNENDED = { finished_at: null, error: null }

export function liveRunVerbs(db: Database): Pick<Store, 'liveRuns'> {
  return {
    liveRuns: async () => {
      const policies = new Map<string, Policy>()
      return (await db.all<Row>(LIVE_RUNS)).map((row) => readRun(row, policies))
    },
  }
}

/** Most runs are worked on with the same few policies: each text is read once. */
function readRun(row: Row, policies: Map<string, Policy>): LiveRun {
  const target = readTarget(row)
  const policy = policies.get(row.policy) ?? (JSON.parse(row.policy) as Policy)
  policies.set(row.policy, policy)
  const facts = { ...row, ...UNENDED, policy, owner: target?.worker ?? null }
  return { run: toRunWith(facts, row), target }
}

function readTarget(row: OnlyTargetRow): OnlyTarget | null {
  if (row.target_id === null) return null
  return {
    id: row.target_id,
    status: row.target_status,
    worker: row.target_status === 'in_progress' ? row.worker_id : null,
    seq: row.seq,
    page: row.page,
    pageTarget: row.page_target,
    next: row.next_url,
    lastItemId: row.last_item_id,
    cursor: row.cursor,
    errors: row.errors,
    crashesAlone: row.crashes_alone,
    lastActivityAt: row.target_last_activity_at,
  }
}
