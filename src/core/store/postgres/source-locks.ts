import { HeartbeatOverdueError } from '../../model/errors.ts'
import type { SourceLock } from '../../model/source-lock.ts'
import { toSourceLock, type SourceLockRow } from '../command-rows.ts'
import type { LockSourceRequest, Store } from '../store.ts'
import { ms, sql, type Connection, type Database } from './database.ts'
import { MAY_CLAIM } from './may-claim.ts'
import { stripNul } from './strip-nul.ts'

export const SOURCE_LOCK_COLUMNS = /* sql */ `
  g.source, g.worker_id, g.kill_timeout_ms, g.process_tag, g.gave_up_because,
  ${ms('g.since')} AS since, ${ms('g.unlocking_since')} AS unlocking_since,
  ${ms('g.gave_up_at')} AS gave_up_at,
  CASE WHEN g.gave_up_at IS NOT NULL THEN (
    SELECT r.acknowledged_at >= g.gave_up_at FROM unstuck.run r WHERE r.source = g.source ORDER BY r.id DESC LIMIT 1
  ) END AS gave_up_seen
`
// Transactions that lock workers and source locks lock the workers first. A heartbeat waits until the lock has changed hands, or
// is seen.
const LOCK_WORKERS = sql('source-lock:workers')`
  SELECT id, ${MAY_CLAIM} AS may_claim FROM unstuck.worker WHERE id = ANY ($1::uuid[]) ORDER BY id FOR SHARE
`
/** Creates the lock's row if there is none, and locks it, so that the following read of its holder is current. */
const MAKE_AND_LOCK = sql('source-lock:row')`
  INSERT INTO unstuck.source_lock (source, kill_timeout_ms, process_tag) VALUES ($1, $2, $3)
  ON CONFLICT (source) DO UPDATE SET process_tag = source_lock.process_tag
`
// An unknown holder has ended. For the holder itself nothing changes.
const TAKE_LOCK = sql('source-lock:take')`
  UPDATE unstuck.source_lock g
     SET worker_id = $2, since = clock_timestamp(), kill_timeout_ms = $3,
         unlocking_since = NULL, gave_up_at = NULL, gave_up_because = NULL
   WHERE g.source = $1 AND g.worker_id IS DISTINCT FROM $2
     AND (g.worker_id IS NULL
       OR NOT EXISTS (SELECT FROM unstuck.worker w WHERE w.id = g.worker_id AND w.ended_at IS NULL)
       OR (g.worker_id = $4::uuid
           AND EXISTS (SELECT FROM unstuck.worker w WHERE w.id = $4::uuid AND w.heartbeats = $5::int)))
  RETURNING 1
`
// Left behind by a killed supervisor; the next lock holder clears it.
const FORGET_START = sql('source-lock:forget-start')`
  UPDATE unstuck.source SET next_start_at = NULL, run_now_at = NULL WHERE source = $1
`
const MARK_UNLOCKING = sql('source-lock:unlocking')`
  UPDATE unstuck.source_lock SET unlocking_since = coalesce(unlocking_since, clock_timestamp())
   WHERE source = $1 AND worker_id = $2
`
const UNLOCK = sql('source-lock:unlock')`
  WITH still AS MATERIALIZED (
    SELECT id FROM unstuck.worker WHERE id = $2 AND heartbeats = $3::int FOR SHARE
  )
  UPDATE unstuck.source_lock
     SET worker_id = NULL, since = NULL, unlocking_since = NULL,
         gave_up_at = CASE WHEN $4::text IS NOT NULL THEN clock_timestamp() END, gave_up_because = $4
   WHERE source = $1 AND worker_id = $2 AND ($3::int IS NULL OR EXISTS (SELECT FROM still))
  RETURNING source
`
const SOURCE_LOCK = sql('source-lock')`
  SELECT ${SOURCE_LOCK_COLUMNS} FROM unstuck.source_lock g WHERE g.source = $1
`
const SOURCE_LOCKS = sql('source-locks')`
  SELECT ${SOURCE_LOCK_COLUMNS} FROM unstuck.source_lock g ORDER BY g.source
`

export function sourceLockMethods(db: Database) {
  return {
    lockSource: (request) =>
      db.transaction('source-lock:lock', (connection) =>
        lockSource(connection, request, db.address.where),
      ),

    markUnlocking: async (source, worker) => void (await db.all(MARK_UNLOCKING, [source, worker])),

    unlockSource: async ({ source, worker, heartbeats = null, gaveUp }) => {
      const because = gaveUp === undefined ? null : stripNul(gaveUp)
      return (await db.all(UNLOCK, [source, worker, heartbeats, because])).length > 0
    },

    sourceLocks: async (source) => {
      const rows =
        source === undefined
          ? await db.all<SourceLockRow>(SOURCE_LOCKS)
          : await db.all<SourceLockRow>(SOURCE_LOCK, [source])
      return rows.map(toSourceLock)
    },
  } satisfies Partial<Store>
}

async function lockSource(
  connection: Connection,
  request: LockSourceRequest,
  where: string,
): Promise<SourceLock> {
  const { source, worker, killTimeoutMs, processTag, takeOverFrom } = request
  type Row = { id: string; may_claim: boolean }
  const both = takeOverFrom ? [worker, takeOverFrom.worker] : [worker]
  const workers = await connection.all<Row>(LOCK_WORKERS, [both])
  const mayClaim = workers.some((row) => row.id === worker && row.may_claim)
  await connection.all(MAKE_AND_LOCK, [source, killTimeoutMs, processTag])
  const { worker: insteadOf = null, heartbeats = null } = takeOverFrom ?? {}
  const taking = [source, worker, killTimeoutMs, insteadOf, heartbeats]
  if (mayClaim && (await connection.all(TAKE_LOCK, taking)).length > 0)
    await connection.all(FORGET_START, [source])
  const [row] = await connection.all<SourceLockRow>(SOURCE_LOCK, [source])
  const sourceLock = toSourceLock(row!)
  if (!mayClaim && sourceLock.worker !== worker) throw new HeartbeatOverdueError(where)
  return sourceLock
}
