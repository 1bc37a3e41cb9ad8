import { AlreadyRunningError } from '../../model/errors.ts'
import { newId, type RunId } from '../../model/id.ts'
import { isLive } from '../../model/run.ts'
import type { RunMove, Store } from '../store.ts'
import { recordAudit } from './audit.ts'
import { ms, sql, preferIndexes, type Connection, type Database } from './database.ts'
import { LIVE, lockRun, lockRunIfAny, refuseOtherLive } from './runs.ts'
import { stripNul } from './strip-nul.ts'
import { ADD_ON_CONFLICT, ADD_MOVED_COUNTS } from './counters.ts'

// Runs under the run's lock, with a newer snapshot: a claim from a queued or interrupted run is seen, or waits. A concurrent
// claim from a running one is not seen; its worker learns of the move with its next heartbeat.
const MOVE = sql('move')`
  UPDATE unstuck.run r
     SET status = $2::text,
         error = CASE WHEN $2 <> 'interrupted' THEN $3 END,
         finished_at = CASE WHEN $2 <> 'interrupted' THEN clock_timestamp() END
   WHERE r.id = $1 AND r.status IN ${LIVE} AND ($2 <> 'interrupted' OR r.status = 'running')
     AND ($4::text IS NULL OR r.status = $4)
     AND ($5::float8 IS NULL OR $5 = coalesce(
           (SELECT ${ms('max(t.last_activity_at)')} FROM unstuck.run_counters t WHERE t.run_id = r.id),
           ${ms('r.created_at')}))
     AND ($7::int IS NULL OR r.resumes = $7)
     AND (NOT $6::boolean OR NOT EXISTS (
           SELECT FROM unstuck.target t WHERE t.run_id = r.id AND t.status = 'in_progress'))
  RETURNING r.id
`
/** Their holders find the claim gone. A timeout is not a crash. */
const RELEASE_TARGETS = sql('move:release')`
  WITH held AS MATERIALIZED (
    SELECT id, status AS was FROM unstuck.target WHERE run_id = $2 AND status = 'in_progress'
     ORDER BY id FOR UPDATE
  ),
  moved AS (
    UPDATE unstuck.target t
       SET status = 'planned', claim_id = NULL, ready_at = 'epoch', last_error = $3,
           crashes = greatest(t.crashes - 1, 0),
           crashes_alone = greatest(t.crashes_alone - t.claimed_alone::int, 0)
      FROM held
     WHERE t.id = held.id
    RETURNING t.run_id, t.group_name, t.status, held.was
  )
  ${ADD_MOVED_COUNTS}
`
// A run with one target follows with the same one. $5: whether it counts as one of the retries that the policy allows.
const QUEUE_RETRY = sql('retry:insert')`
  WITH only_target AS (
    SELECT t.key, t.group_name, t.url FROM unstuck.run r JOIN unstuck.target t ON t.run_id = r.id
     WHERE r.id = $3 AND r.kind = 'single' ORDER BY t.key LIMIT 1
  ),
  queued AS (
    INSERT INTO unstuck.run (id, source, kind, status, policy, planned_at, retries, retry_of, input, profile)
    SELECT $2, source, kind, 'queued', policy,
           CASE WHEN EXISTS (SELECT FROM only_target) THEN clock_timestamp() END,
           CASE WHEN $5::boolean THEN retries + 1 ELSE 0 END, id, input, profile
      FROM unstuck.run WHERE id = $3
    RETURNING id
  ),
  added AS (
    INSERT INTO unstuck.target (id, run_id, key, group_name, url)
    SELECT $4, queued.id, t.key, t.group_name, t.url FROM queued, only_target t
    RETURNING run_id, group_name
  )
  INSERT INTO unstuck.run_counters (run_id, group_name, writer, planned) SELECT run_id, group_name, $1, 1 FROM added
  ${ADD_ON_CONFLICT}
`
const FIND_RETRY = sql('retry:read')`SELECT FROM unstuck.run WHERE id = $1 AND retry_of = $2`

export function runMoveMethods(db: Database): Pick<Store, 'moveRun' | 'retryRun'> {
  return {
    moveRun: (move) => db.transaction('move', (connection) => moveRun(connection, move)),

    retryRun: ({ run, newRun, actor, because }) =>
      db.transaction('retry', async (connection) => {
        const { source, status } = await lockRun(connection, run)
        if ((await connection.all(FIND_RETRY, [newRun, run])).length > 0) return // asked again
        await refuseOtherLive(connection, source, run)
        const end = { run, to: 'failed', because, expected: { isUnclaimed: true } } as const
        if (isLive(status) && !(await move(connection, end))) {
          throw new AlreadyRunningError(source, run)
        }
        await queueRetry(connection, { run, newRun, counts: false })
        const entry = { actor, action: 'retry', because, source, run }
        const after = { status: isLive(status) ? 'failed' : status, newRun }
        await recordAudit(connection, { ...entry, before: { status }, after })
      }),
  }
}

/** The same inside a transaction of its caller. */
export async function moveRun(connection: Connection, request: RunMove): Promise<boolean> {
  const { run, to, actor, action, because, evidence } = request
  const stands = await lockRunIfAny(connection, run)
  if (!stands || !(await move(connection, request))) return false
  const { source, status } = stands
  const entry = { actor, action, because, evidence, source, run }
  await recordAudit(connection, { ...entry, before: { status }, after: { status: to } })
  return true
}

type Move = Pick<RunMove, 'run' | 'to' | 'because' | 'expected'>

async function move(
  connection: Connection,
  { run, to, because, expected }: Move,
): Promise<boolean> {
  const { status = null, lastActivityAt = null, isUnclaimed = false, resumes = null } = expected
  const why = stripNul(because)
  await preferIndexes(connection, 'move')
  const moved = await connection.all(MOVE, [
    run,
    to,
    why,
    status,
    lastActivityAt,
    isUnclaimed,
    resumes,
  ])
  if (moved.length === 0) return false
  const isTimeout = to === 'interrupted' || to === 'failed'
  if (isTimeout) await connection.writeCounts(RELEASE_TARGETS, [run, why])
  return true
}

/** A queued run that follows another from nothing. The other one must have ended by now. */
export async function queueRetry(
  connection: Connection,
  { run, newRun, counts }: { run: RunId; newRun: RunId; counts: boolean },
): Promise<void> {
  await connection.writeCounts(QUEUE_RETRY, [newRun, run, newId(), counts])
}
