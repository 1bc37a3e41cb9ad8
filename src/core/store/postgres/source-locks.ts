import { HeartbeatOverdue } from '../../model/errors.ts'
import type { Guard } from '../../model/source-lock.ts'
import { toGuard, type GuardRow } from '../command-rows.ts'
import type { HoldSource, Store } from '../store.ts'
import { ms, sql, type Asks, type Connection, type Database } from './database.ts'
import { MAY_CLAIM } from './may-claim.ts'
import { storable } from './strip-nul.ts'

export const GUARD_COLUMNS = /* sql */ `
  g.source, g.worker_id, g.kill_timeout_ms, g.cookie, g.gave_up_because,
  ${ms('g.since')} AS since, ${ms('g.ending_since')} AS ending_since,
  ${ms('g.gave_up_at')} AS gave_up_at
`
// Whoever locks workers and guards locks the workers first. A beat waits until the guard has changed hands, or
// is seen.
const LOCK_WORKERS = sql(
  'guard:workers',
  /* sql */ `
  SELECT id, ${MAY_CLAIM} AS may_claim FROM unstuck.worker WHERE id = ANY ($1::uuid[]) ORDER BY id FOR SHARE
`,
)
/** Makes the guard where there is none, and locks it: so the look at its holder that follows is younger than its hold. */
const LOCK = sql(
  'guard:lock',
  /* sql */ `
  INSERT INTO unstuck.guard (source, kill_timeout_ms, cookie) VALUES ($1, $2, $3)
  ON CONFLICT (source) DO UPDATE SET cookie = guard.cookie
`,
)
// A holder that is not known any more has ended. The one who holds it already finds it as it is.
const TAKE = sql(
  'guard:take',
  /* sql */ `
  UPDATE unstuck.guard g
     SET worker_id = $2, since = clock_timestamp(), kill_timeout_ms = $3,
         ending_since = NULL, gave_up_at = NULL, gave_up_because = NULL
   WHERE g.source = $1 AND g.worker_id IS DISTINCT FROM $2
     AND (g.worker_id IS NULL
       OR NOT EXISTS (SELECT FROM unstuck.worker w WHERE w.id = g.worker_id AND w.ended_at IS NULL)
       OR (g.worker_id = $4::uuid
           AND EXISTS (SELECT FROM unstuck.worker w WHERE w.id = $4::uuid AND w.beats = $5::int)))
`,
)
const MARK_ENDING = sql(
  'guard:ending',
  /* sql */ `
  UPDATE unstuck.guard SET ending_since = coalesce(ending_since, clock_timestamp())
   WHERE source = $1 AND worker_id = $2
`,
)
const FREE = sql(
  'guard:free',
  /* sql */ `
  WITH still AS MATERIALIZED (
    SELECT id FROM unstuck.worker WHERE id = $2 AND beats = $3::int FOR SHARE
  )
  UPDATE unstuck.guard
     SET worker_id = NULL, since = NULL, ending_since = NULL,
         gave_up_at = CASE WHEN $4::text IS NOT NULL THEN clock_timestamp() END, gave_up_because = $4
   WHERE source = $1 AND worker_id = $2 AND ($3::int IS NULL OR EXISTS (SELECT FROM still))
  RETURNING source
`,
)
const GUARD = sql('guard', `SELECT ${GUARD_COLUMNS} FROM unstuck.guard g WHERE g.source = $1`)
const GUARDS = sql('guards', `SELECT ${GUARD_COLUMNS} FROM unstuck.guard g ORDER BY g.source`)

type GuardVerbs = Pick<Store, 'holdSource' | 'markEnding' | 'freeSource' | 'guards' | 'guard'>

export function guardVerbs(db: Database): GuardVerbs {
  return {
    holdSource: (request) =>
      db.transaction('guard:hold', async (connection) => {
        const { guard, mayClaim } = await hold(connection, request)
        if (!mayClaim && guard.worker !== request.worker)
          throw new HeartbeatOverdue(db.address.where)
        return guard
      }),

    markEnding: async (source, worker) => void (await db.all(MARK_ENDING, [source, worker])),

    freeSource: async ({ source, worker, beats = null, gaveUp }) => {
      const because = gaveUp === undefined ? null : storable(gaveUp)
      return (await db.all(FREE, [source, worker, beats, because])).length > 0
    },

    guards: async () => (await db.all<GuardRow>(GUARDS)).map(toGuard),

    guard: (source) => lookAt(db, source),
  }
}

async function hold(
  connection: Connection,
  request: HoldSource,
): Promise<{ guard: Guard; mayClaim: boolean }> {
  const { source, worker, killTimeoutMs, cookie, instead } = request
  type Row = { id: string; may_claim: boolean }
  const both = instead ? [worker, instead.worker] : [worker]
  const workers = await connection.all<Row>(LOCK_WORKERS, [both])
  const mayClaim = workers.some((row) => row.id === worker && row.may_claim)
  await connection.all(LOCK, [source, killTimeoutMs, cookie])
  const { worker: insteadOf = null, beats = null } = instead ?? {}
  if (mayClaim) await connection.all(TAKE, [source, worker, killTimeoutMs, insteadOf, beats])
  return { guard: (await lookAt(connection, source))!, mayClaim }
}

async function lookAt(db: Asks, source: string): Promise<Guard | null> {
  const [row] = await db.all<GuardRow>(GUARD, [source])
  return row ? toGuard(row) : null
}
