import type { Policy } from '../../model/policy.ts'
import { toRunWith, type BooksRow, type RunFactsRow } from '../rows.ts'
import type { OnlyTarget, Store } from '../store.ts'
import { sql, type Database } from './database.ts'
import { readJson, type SqliteTargetRow } from './lists.ts'
import { LIVE } from './runs.ts'

// Three plain walks, put together here: a thousand runs take a few milliseconds. As one statement SQLite would sort
// all its columns to group them.
const RUNS = sql(
  'runs:live',
  /* sql */ `
  SELECT id, source, kind, status, policy, created_at, started_at, resumed_at, reopened_at, planned_at,
         progress_done, progress_total, resumes, retries, retry_of
    FROM run WHERE status IN ${LIVE}
`,
)
const BOOKS = sql(
  'runs:live-books',
  /* sql */ `
  SELECT run_id, planned, in_progress, done, failed, stuck, parked, pages, items_new, items_updated,
         items_unchanged, skipped, refused, last_activity_at
    FROM tally WHERE run_id IN (SELECT id FROM run WHERE status IN ${LIVE})
`,
)
const ONLY_TARGETS = sql(
  'runs:live-targets',
  /* sql */ `
  SELECT t.id, t.run_id, t.status, t.worker_id, t.seq, t.page, t.page_target, t.next_url, t.last_item_id,
         t.cursor, t.errors, t.crashes_alone, t.last_activity_at
    FROM run r JOIN target t ON t.run_id = r.id
   WHERE r.status IN ${LIVE} AND r.kind = 'single'
`,
)

type FactsRow = Omit<RunFactsRow, 'policy' | 'owner' | 'finished_at' | 'error'> & {
  policy: string
}
type OnlyTargetRow = Pick<
  SqliteTargetRow,
  | 'id'
  | 'run_id'
  | 'status'
  | 'worker_id'
  | 'seq'
  | 'page'
  | 'page_target'
  | 'next_url'
  | 'last_item_id'
  | 'cursor'
  | 'errors'
  | 'crashes_alone'
  | 'last_activity_at'
>
/** Of one group of a run. */
type GroupRow = BooksRow & { run_id: string }

const UNENDED = { finished_at: null, error: null }
const NOTHING_YET: BooksRow = {
  planned: 0,
  in_progress: 0,
  done: 0,
  failed: 0,
  stuck: 0,
  parked: 0,
  pages: 0,
  items_new: 0,
  items_updated: 0,
  items_unchanged: 0,
  skipped: 0,
  refused: 0,
  last_activity_at: null,
}

export function liveRunVerbs(db: Database): Pick<Store, 'liveRuns'> {
  return {
    liveRuns: async () => {
      const { runs, groups, targets } = db.snapshot((tx) => ({
        runs: tx.many<FactsRow>(RUNS),
        groups: tx.many<GroupRow>(BOOKS),
        targets: tx.many<OnlyTargetRow>(ONLY_TARGETS),
      }))
      const booksOf = addUp(groups)
      const targetOf = new Map(targets.map((row) => [row.run_id, readTarget(row)]))
      const readPolicy = readingOnce<Policy>()
      // Ids sort by time: the newest first.
      runs.sort((a, b) => (a.id < b.id ? 1 : -1))
      return runs.map((row) => {
        const target = targetOf.get(row.id) ?? null
        const policy = readPolicy(row.policy)
        const facts = { ...row, ...UNENDED, policy, owner: target?.worker ?? null }
        return { run: toRunWith(facts, booksOf.get(row.id) ?? NOTHING_YET), target }
      })
    },
  }
}

function readTarget(row: OnlyTargetRow): OnlyTarget {
  return {
    id: row.id,
    status: row.status,
    worker: row.status === 'in_progress' ? row.worker_id : null,
    seq: row.seq,
    page: row.page,
    pageTarget: row.page_target,
    next: row.next_url,
    lastItemId: row.last_item_id,
    cursor: readJson(row.cursor),
    errors: row.errors,
    crashesAlone: row.crashes_alone,
    lastActivityAt: row.last_activity_at,
  }
}

function addUp(groups: readonly GroupRow[]): Map<string, BooksRow> {
  const books = new Map<string, BooksRow>()
  for (const group of groups) {
    const sum = books.get(group.run_id)
    if (!sum) books.set(group.run_id, group)
    else for (const name of SUMMED) sum[name] += group[name]
    if (sum) sum.last_activity_at = Math.max(sum.last_activity_at ?? 0, group.last_activity_at ?? 0)
  }
  return books
}

const { last_activity_at: _, ...COUNTS } = NOTHING_YET
const SUMMED = Object.keys(COUNTS) as (keyof typeof COUNTS)[]

/** Most runs are worked on with the same few policies: each text is read once. */
function readingOnce<T>(): (text: string) => T {
  const read = new Map<string, T>()
  return (text) => {
    let value = read.get(text)
    if (value === undefined) read.set(text, (value = JSON.parse(text) as T))
    return value
  }
}
