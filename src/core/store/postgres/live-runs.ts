import { LIMITS } from '../../model/limits.ts'
import {
  COUNTER_COLUMNS,
  ONLY_TARGET_COLUMNS,
  toLiveRun,
  type RunCountersRow,
  type LiveRunRow,
} from '../rows.ts'
import type { Store } from '../store.ts'
import { ms, sql, type Database } from './database.ts'
import { LIVE } from './runs.ts'

// Two statements, on two connections at once: to make and to read a thousand rows takes its time on either side. A count
// of a run that is zero, and a policy without changes, is not sent.
export const LIVE_RUNS = sql('runs:live-facts')`
  SELECT r.id, r.source, r.kind, r.status, nullif(r.policy, '{}') AS policy, r.progress_done,
         r.progress_total, nullif(r.resumes, 0) AS resumes, nullif(r.retries, 0) AS retries, r.retry_of, ${ms('r.created_at')} AS created_at,
         ${ms('r.started_at')} AS started_at, ${ms('r.resumed_at')} AS resumed_at,
         ${ms('r.reopened_at')} AS reopened_at, ${ms('r.planned_at')} AS planned_at,
         NULL AS finished_at, NULL AS acknowledged_at, ${ms('s.paused_at')} AS paused_at, s.paused_because, NULL AS error, CASE WHEN length(r.input::text) <= ${LIMITS.listed} THEN r.input END AS input, nullif(r.artifacts, 0) AS artifacts, r.profile, t.*
    FROM (SELECT * FROM unstuck.run WHERE status IN ${LIVE} ORDER BY id DESC) AS r
    LEFT JOIN unstuck.source s ON s.source = r.source
    LEFT JOIN LATERAL (
      SELECT status AS target_status, CASE status WHEN 'in_progress' THEN worker_id END AS owner,
             ${ONLY_TARGET_COLUMNS.join(', ')},
             ${ms('last_activity_at')} AS target_last_activity_at
        FROM unstuck.target WHERE run_id = r.id AND r.kind = 'single'
       ORDER BY key LIMIT 1 -- it has only one; so the index is walked, whatever the statistics say
    ) AS t ON true
   ORDER BY r.id DESC
`
export const LIVE_COUNTERS = sql('runs:live-counters')`
  SELECT r.id, counters.*
    FROM (SELECT id FROM unstuck.run WHERE status IN ${LIVE}) AS r
    CROSS JOIN LATERAL (
      SELECT ${COUNTER_COLUMNS.map((column) => `nullif(sum(t.${column}), 0)::int AS ${column}`).join(', ')},
             ${ms('max(t.last_activity_at)')} AS last_activity_at
        FROM unstuck.run_counters t WHERE t.run_id = r.id
    ) AS counters
`

export function liveRunMethods(db: Database): Pick<Store, 'liveRuns'> {
  return {
    liveRuns: async () => {
      const [facts, counters] = await Promise.all([
        db.all<LiveRunRow>(LIVE_RUNS),
        db.all<RunCountersRow & { id: string }>(LIVE_COUNTERS),
      ])
      const countersOf = new Map(counters.map((row) => [row.id, row]))
      return facts.flatMap((row) => {
        const sums = countersOf.get(row.id)
        // It started or ended between the two reads.
        return sums ? toLiveRun(row, sums) : []
      })
    },
  }
}
