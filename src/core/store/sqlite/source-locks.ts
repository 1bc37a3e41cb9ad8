import { HeartbeatOverdueError } from '../../model/errors.ts'
import type { SourceLock } from '../../model/source-lock.ts'
import { toSourceLock, type SourceLockRow } from '../command-rows.ts'
import type { LockSourceRequest, Store } from '../store.ts'
import { mayClaim } from './may-claim.ts'
import { sql, type Connection, type Database } from './database.ts'

const MAKE_LOCK = sql('source-lock:make')`
  INSERT INTO source_lock (source, kill_timeout_ms, process_tag) VALUES (:source, :killTimeoutMs, :processTag)
  ON CONFLICT (source) DO NOTHING
`
// An unknown holder has ended. For the holder itself nothing changes.
const TAKE_LOCK = sql('source-lock:take')`
  UPDATE source_lock SET worker_id = :worker, since = :now, kill_timeout_ms = :killTimeoutMs,
                   unlocking_since = NULL, gave_up_at = NULL, gave_up_because = NULL
   WHERE source = :source AND worker_id IS NOT :worker
     AND (worker_id IS NULL
       OR NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = source_lock.worker_id AND w.ended_at IS NULL)
       OR (worker_id = :insteadOf
           AND EXISTS (SELECT 1 FROM worker w WHERE w.id = :insteadOf AND w.heartbeats = :heartbeats)))
`
// Left behind by a killed supervisor; the next lock holder clears it.
const FORGET_START = sql('source-lock:forget-start')`
  UPDATE source SET next_start_at = NULL, run_now_at = NULL WHERE source = :source
`
const MARK_UNLOCKING = sql('source-lock:unlocking')`
  UPDATE source_lock SET unlocking_since = coalesce(unlocking_since, :now)
   WHERE source = :source AND worker_id = :worker
`
const UNLOCK = sql('source-lock:unlock')`
  UPDATE source_lock SET worker_id = NULL, since = NULL, unlocking_since = NULL,
                   gave_up_at = CASE WHEN :gaveUp IS NULL THEN NULL ELSE :now END, gave_up_because = :gaveUp
   WHERE source = :source AND worker_id = :worker
     AND (:heartbeats IS NULL OR EXISTS (SELECT 1 FROM worker w WHERE w.id = :worker AND w.heartbeats = :heartbeats))
`
const COLUMNS = /* sql */ `
  g.*, CASE WHEN g.gave_up_at IS NOT NULL THEN (
    SELECT r.acknowledged_at >= g.gave_up_at FROM run r WHERE r.source = g.source ORDER BY r.id DESC LIMIT 1
  ) END AS gave_up_seen
`
const SOURCE_LOCK = sql(
  'source-lock',
)`SELECT ${COLUMNS} FROM source_lock g WHERE g.source = :source`
const SOURCE_LOCKS = sql('source-locks')`SELECT ${COLUMNS} FROM source_lock g ORDER BY g.source`
const LOCKED_BY_ANOTHER = sql('source-lock:other')`
  SELECT ${COLUMNS} FROM source_lock g JOIN worker w ON w.id = g.worker_id
   WHERE g.source = :source AND g.worker_id <> :worker AND w.ended_at IS NULL
`

export function sourceLockMethods(db: Database) {
  return {
    lockSource: (request) =>
      db.write('source-lock:lock', (tx) => lockSource(tx, request, db.location)),

    markUnlocking: (source, worker) =>
      db.write('source-lock:unlocking', (tx) => {
        tx.run(MARK_UNLOCKING, { source, worker, now: tx.now() })
      }),

    unlockSource: ({ source, worker, heartbeats = null, gaveUp = null }) =>
      db.write(
        'source-lock:unlock',
        (tx) => tx.run(UNLOCK, { source, worker, heartbeats, gaveUp, now: tx.now() }) === 1,
      ),

    sourceLocks: async (source) =>
      db
        .read((tx) =>
          source === undefined
            ? tx.all<SourceLockRow>(SOURCE_LOCKS)
            : tx.all<SourceLockRow>(SOURCE_LOCK, { source }),
        )
        .map(toSourceLock),
  } satisfies Partial<Store>
}

function lockSource(tx: Connection, request: LockSourceRequest, where: string): SourceLock {
  const { source, worker, killTimeoutMs, processTag, takeOverFrom } = request
  tx.run(MAKE_LOCK, { source, killTimeoutMs, processTag })
  const isAllowed = mayClaim(tx, worker)
  const taking = {
    source,
    worker,
    killTimeoutMs,
    now: tx.now(),
    insteadOf: takeOverFrom?.worker ?? null,
    heartbeats: takeOverFrom?.heartbeats ?? null,
  }
  if (isAllowed && tx.run(TAKE_LOCK, taking) === 1) tx.run(FORGET_START, { source })
  const sourceLock = toSourceLock(tx.get<SourceLockRow>(SOURCE_LOCK, { source })!)
  if (!isAllowed && sourceLock.worker !== worker) throw new HeartbeatOverdueError(where)
  return sourceLock
}

/** The lock of a source, if another worker holds it that has not ended. */
export function lockedByAnother(tx: Connection, source: string, worker: string): SourceLock | null {
  const row = tx.get<SourceLockRow>(LOCKED_BY_ANOTHER, { source, worker })
  return row ? toSourceLock(row) : null
}
