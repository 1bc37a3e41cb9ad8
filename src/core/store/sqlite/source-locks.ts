import { HeartbeatOverdue } from '../../model/errors.ts'
import type { Guard } from '../../model/source-lock.ts'
import { toGuard, type GuardRow } from '../command-rows.ts'
import type { HoldSource, Store } from '../store.ts'
import { mayClaim } from './may-claim.ts'
import { sql, type Connection, type Database } from './database.ts'

const MAKE = sql(
  'guard:make',
  /* sql */ `
  INSERT INTO guard (source, kill_timeout_ms, cookie) VALUES (:source, :killTimeoutMs, :cookie)
  ON CONFLICT (source) DO NOTHING
`,
)
// A holder that is not known any more has ended. The one who holds it already finds it as it is.
const TAKE = sql(
  'guard:take',
  /* sql */ `
  UPDATE guard SET worker_id = :worker, since = :now, kill_timeout_ms = :killTimeoutMs,
                   ending_since = NULL, gave_up_at = NULL, gave_up_because = NULL
   WHERE source = :source AND worker_id IS NOT :worker
     AND (worker_id IS NULL
       OR NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = guard.worker_id AND w.ended_at IS NULL)
       OR (worker_id = :insteadOf
           AND EXISTS (SELECT 1 FROM worker w WHERE w.id = :insteadOf AND w.beats = :beats)))
`,
)
const MARK_ENDING = sql(
  'guard:ending',
  /* sql */ `
  UPDATE guard SET ending_since = coalesce(ending_since, :now)
   WHERE source = :source AND worker_id = :worker
`,
)
const FREE = sql(
  'guard:free',
  /* sql */ `
  UPDATE guard SET worker_id = NULL, since = NULL, ending_since = NULL,
                   gave_up_at = CASE WHEN :gaveUp IS NULL THEN NULL ELSE :now END, gave_up_because = :gaveUp
   WHERE source = :source AND worker_id = :worker
     AND (:beats IS NULL OR EXISTS (SELECT 1 FROM worker w WHERE w.id = :worker AND w.beats = :beats))
`,
)
const GUARD = sql('guard', `SELECT * FROM guard WHERE source = :source`)
const GUARDS = sql('guards', `SELECT * FROM guard ORDER BY source`)
const HELD_BY_ANOTHER = sql(
  'guard:other',
  /* sql */ `
  SELECT g.* FROM guard g JOIN worker w ON w.id = g.worker_id
   WHERE g.source = :source AND g.worker_id <> :worker AND w.ended_at IS NULL
`,
)

type GuardVerbs = Pick<Store, 'holdSource' | 'markEnding' | 'freeSource' | 'guards' | 'guard'>

export function guardVerbs(db: Database): GuardVerbs {
  return {
    holdSource: (request) => db.write('guard:hold', (tx) => hold(tx, request, db.where)),

    markEnding: (source, worker) =>
      db.write('guard:ending', (tx) => {
        tx.run(MARK_ENDING, { source, worker, now: tx.now() })
      }),

    freeSource: ({ source, worker, beats = null, gaveUp = null }) =>
      db.write(
        'guard:free',
        (tx) => tx.run(FREE, { source, worker, beats, gaveUp, now: tx.now() }) === 1,
      ),

    guards: async () => db.read((tx) => tx.all<GuardRow>(GUARDS)).map(toGuard),

    guard: async (source) => db.read((tx) => lookAt(tx, source)),
  }
}

function hold(tx: Connection, request: HoldSource, where: string): Guard {
  const { source, worker, killTimeoutMs, cookie, instead } = request
  tx.run(MAKE, { source, killTimeoutMs, cookie })
  const isAllowed = mayClaim(tx, worker)
  const taking = {
    source,
    worker,
    killTimeoutMs,
    now: tx.now(),
    insteadOf: instead?.worker ?? null,
    beats: instead?.beats ?? null,
  }
  if (isAllowed) tx.run(TAKE, taking)
  const guard = lookAt(tx, source)!
  if (!isAllowed && guard.worker !== worker) throw new HeartbeatOverdue(where)
  return guard
}

function lookAt(tx: Connection, source: string): Guard | null {
  const row = tx.get<GuardRow>(GUARD, { source })
  return row ? toGuard(row) : null
}

/** The guard of a source, if somebody else holds it who has not ended. */
export function heldByAnother(tx: Connection, source: string, worker: string): Guard | null {
  const row = tx.get<GuardRow>(HELD_BY_ANOTHER, { source, worker })
  return row ? toGuard(row) : null
}
