import { messageOf, UsageError } from '../../model/errors.ts'
import { newId, type RunId } from '../../model/id.ts'
import type { TargetInput } from '../../model/target.ts'
import { cleanJson } from '../../model/text.ts'
import { checkTargets } from '../new-targets.ts'
import type { Store } from '../store.ts'
import { sql, type Database } from './database.ts'
import { isDataError } from './errors.ts'
import { LIVE } from './runs.ts'
import { ADD_ON_CONFLICT } from './counters.ts'

// The run's row is locked, so that it cannot end between this read and this commit. Targets go in sorted by key: two
// planners of the same list wait for each other instead of locking each other out. What is put in front of all others
// waits since before 1970, the longer ago the later it came: what was begun before waits since 1970.
const PLAN = sql('plan')`
  WITH live AS MATERIALIZED (
    SELECT id FROM unstuck.run WHERE id = $2 AND status IN ${LIVE} FOR SHARE
  ),
  added AS (
    INSERT INTO unstuck.target (id, run_id, key, group_name, url, data, cursor, status, finished_at, ready_at)
    SELECT p.id, live.id, p.key, coalesce(p.group_name, ''), p.url, p.data, p.cursor,
           CASE WHEN p.done THEN 'done' ELSE 'planned' END, CASE WHEN p.done THEN clock_timestamp() END,
           CASE WHEN p.forefront THEN 'epoch'::timestamptz - interval '1 microsecond'
             * (round(date_part('epoch', statement_timestamp()) * 1e6) + p.n) END
      FROM live, json_to_recordset($3::json) AS p (
             n int, id uuid, key text COLLATE "C", group_name text, url text, data jsonb, cursor jsonb, forefront boolean, done boolean)
     ORDER BY p.key, p.id
    ON CONFLICT (run_id, key) DO NOTHING
    RETURNING run_id, group_name, status
  ),
  counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, planned, done)
    SELECT run_id, group_name, $1, count(*) FILTER (WHERE status = 'planned'), count(*) FILTER (WHERE status = 'done')
      FROM added GROUP BY run_id, group_name ORDER BY run_id, group_name
    ${ADD_ON_CONFLICT}
  )
  SELECT (SELECT count(*) FROM live)::int AS live, (SELECT count(*) FROM added)::int AS added
`
const CLAIM_PLANNING = sql('plan:take')`
  UPDATE unstuck.run r SET planning_worker_id = $2
   WHERE id = $1 AND planned_at IS NULL AND status IN ${LIVE}
     AND NOT EXISTS (SELECT FROM unstuck.source s WHERE s.source = r.source AND s.paused_at IS NOT NULL)
     AND (planning_worker_id IS NULL OR planning_worker_id = $2
          OR NOT EXISTS (SELECT FROM unstuck.worker w WHERE w.id = r.planning_worker_id AND w.ended_at IS NULL))
  RETURNING id
`
const FINISH_PLANNING = sql('plan:finish')`
  UPDATE unstuck.run SET planned_at = coalesce(planned_at, clock_timestamp()), planning_worker_id = NULL WHERE id = $1
`

const BATCH = 5_000

export function planMethods(db: Database) {
  return {
    plan: async (run, targets) => {
      checkTargets(targets)
      let added = 0
      for (let at = 0; at < targets.length; at += BATCH) {
        added += await plan(db, run, targets.slice(at, at + BATCH))
      }
      return added
    },
    claimPlanning: async (run, worker) => (await db.all(CLAIM_PLANNING, [run, worker])).length > 0,
    finishPlanning: async (run) => void (await db.all(FINISH_PLANNING, [run])),
  } satisfies Partial<Store>
}

async function plan(db: Database, run: RunId, targets: readonly TargetInput[]): Promise<number> {
  // Ids made in the same millisecond are in no order; sorted, they keep the order in which the targets came.
  const ids = targets.map(newId).sort()
  const rows = targets.map(({ group: group_name, ...target }, n) => {
    return { n, id: ids[n], group_name, ...target }
  })
  try {
    const [answer] = await db.writeCounts<{ live: number; added: number }>(PLAN, [
      run,
      cleanJson(JSON.stringify(rows)).json,
    ])
    if (answer!.live === 0) throw new UsageError(`Run ${run} has ended: it takes no more targets.`)
    return answer!.added
  } catch (error) {
    if (!isDataError(error)) throw error
    throw new UsageError(
      `targets() yielded something that PostgreSQL cannot store: ${messageOf(error)}. Clean its keys, addresses and cursors.`,
      { cause: error },
    )
  }
}
