import {
  checkCounters,
  runsWithoutEndTime,
  LISTED_MAX,
  LIVE_RUNS_MAX,
  NEWEST_RUNS_MAX,
  type InvalidClaim,
  type CounterCheckRow,
  type Inspection,
  type InspectionStore,
  type InspectedRun,
} from './store.ts'
import { LIVE, ms, sql, SUMS, type Database } from '../../../core/store/postgres/kit.ts'

const DURABILITY = sql('inspect:durability')`
  SELECT current_setting('synchronous_commit') AS synchronous_commit
`
const INSPECTED_RUNS = sql('inspect:runs')`
  WITH chosen AS (
    (SELECT id FROM unstuck.run WHERE status IN ${LIVE} ORDER BY id DESC LIMIT $1)
    UNION
    (SELECT id FROM unstuck.run ORDER BY id DESC LIMIT $2)
  )
  SELECT r.id, r.source, r.status, ${ms('r.finished_at')} AS finished_at,
         (SELECT coalesce(sum(planned + in_progress + done + failed + stuck + parked), 0)::float8
            FROM unstuck.run_counters WHERE run_id = r.id) AS targets
    FROM chosen JOIN unstuck.run r ON r.id = chosen.id
   ORDER BY r.status IN ${LIVE} DESC, r.id DESC
`
// One statement reads one snapshot: a run in progress must not look wrong.
const COUNTERS = sql('inspect:counters')`
  SELECT ${SUMS},
         (SELECT jsonb_object_agg(status, targets) FROM (
           SELECT status, count(*) AS targets FROM unstuck.target WHERE run_id = $1 GROUP BY status) AS c) AS counted
    FROM unstuck.run_counters t WHERE t.run_id = $1
`
const DUPLICATE_LIVE_RUNS = sql('inspect:duplicate-live-runs')`
  SELECT source, array_agg(id::text ORDER BY id) AS runs FROM unstuck.run
   WHERE status IN ${LIVE} GROUP BY source HAVING count(*) > 1 ORDER BY source LIMIT $1
`
const INVALID_CLAIMS = sql('inspect:claims')`
  SELECT t.id AS target, t.run_id AS run, r.source, t.worker_id AS worker,
         CASE WHEN t.epoch < 1 THEN 'no-epoch'
              WHEN w.id IS NULL THEN 'worker-unknown'
              ELSE 'worker-ended' END AS fault
    FROM unstuck.target t
    JOIN unstuck.run r ON r.id = t.run_id
    LEFT JOIN unstuck.worker w ON w.id = t.worker_id
   WHERE t.status = 'in_progress' AND r.status IN ${LIVE}
     AND (t.epoch < 1 OR w.id IS NULL OR w.ended_at IS NOT NULL)
   ORDER BY t.id LIMIT $1
`

export function inspectMethods(db: Database): InspectionStore {
  return {
    async inspect(): Promise<Inspection> {
      const runs = await db.all<InspectedRun>(INSPECTED_RUNS, [LIVE_RUNS_MAX, NEWEST_RUNS_MAX])
      const [durability] = await db.all<{ synchronous_commit: string }>(DURABILITY)
      return {
        durability: durability!,
        counters: await checkCounters(
          runs,
          async (run) => (await db.all<CounterCheckRow>(COUNTERS, [run]))[0]!,
        ),
        duplicateLiveRuns: await db.all<Inspection['duplicateLiveRuns'][number]>(
          DUPLICATE_LIVE_RUNS,
          [LISTED_MAX],
        ),
        invalidClaims: await db.all<InvalidClaim>(INVALID_CLAIMS, [LISTED_MAX]),
        withoutEndTime: runsWithoutEndTime(runs),
        leftoverLocks: [],
        blockedWal: null,
      }
    },
  }
}
