import { LIMITS } from '../../model/limits.ts'
import {
  COUNTER_COLUMNS,
  ONLY_TARGET_COLUMNS,
  toLiveRun,
  type RunCountersRow,
  type LiveRunRow,
} from '../rows.ts'
import type { Store } from '../store.ts'
import { sql, type Database } from './database.ts'
import { readJson } from './lists.ts'
import { LIVE } from './runs.ts'

// One walk along the live runs. A crawl has one row per group of its counters, which are added up here: to group them,
// SQLite would sort all these columns. The one target is found by its id: joined by its run, SQLite would read all targets
// of a crawl before it finds more than one.
export const LIVE_RUNS = sql('runs:live')`
  SELECT r.id, r.source, r.kind, r.status, nullif(r.policy, '{}') AS policy, r.created_at, r.started_at,
         r.resumed_at, r.reopened_at, r.planned_at, NULL AS finished_at, NULL AS acknowledged_at, s.paused_at, s.paused_because, r.progress_done, r.progress_total,
         r.resumes, r.retries, r.retry_of, NULL AS error, iif(length(r.input) <= ${LIMITS.listed}, r.input, NULL) AS input, r.artifacts, r.profile,
         ${COUNTER_COLUMNS.map((column) => `b.${column}`).join(', ')}, b.last_activity_at,
         t.status AS target_status, CASE t.status WHEN 'in_progress' THEN t.worker_id END AS owner,
         ${ONLY_TARGET_COLUMNS.map((column) => `t.${column}`).join(', ')},
         t.last_activity_at AS target_last_activity_at
    FROM run r
    LEFT JOIN source s ON s.source = r.source
    LEFT JOIN run_counters b ON b.run_id = r.id
    LEFT JOIN target t
      ON t.id = CASE r.kind WHEN 'single' THEN (SELECT id FROM target WHERE run_id = r.id LIMIT 1) END
   WHERE r.status IN ${LIVE}
`

type Row = RunCountersRow &
  Omit<LiveRunRow, 'policy' | 'input'> & { policy: string | null; input: string | null }

export function liveRunMethods(db: Database): Pick<Store, 'liveRuns'> {
  return {
    liveRuns: async () => {
      const byRun = new Map<string, Row>()
      for (const row of db.read((tx) => tx.many<Row>(LIVE_RUNS))) {
        const first = byRun.get(row.id)
        if (first) addUp(first, row)
        else byRun.set(row.id, row)
      }
      // Ids sort by time: the newest first.
      const newestFirst = [...byRun.values()].sort((a, b) => (a.id < b.id ? 1 : -1))
      return newestFirst.map((row) => toLiveRun(parsed(row), row))
    },
  }
}

function addUp(sum: Row, group: Row): void {
  for (const name of COUNTER_COLUMNS) sum[name] = (sum[name] ?? 0) + (group[name] ?? 0)
  sum.last_activity_at = Math.max(sum.last_activity_at ?? 0, group.last_activity_at ?? 0)
}

/** Most have the default policy, which is not kept. */
function parsed(row: Row): LiveRunRow {
  const policy = row.policy === null ? null : (JSON.parse(row.policy) as LiveRunRow['policy'])
  return Object.assign(row, { policy, input: readJson(row.input) })
}
