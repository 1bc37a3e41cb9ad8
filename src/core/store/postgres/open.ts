import type { OpenOptions } from '../open.ts'
import type { Store } from '../store.ts'
import { parseAddress } from './address.ts'
import { adoptedMemoryVerbs } from './adopted-memory.ts'
import { alertVerbs } from './alerts.ts'
import { auditVerbs } from './audit.ts'
import { beginVerbs } from './begin.ts'
import { checkpointVerbs } from './checkpoints.ts'
import { claimEndVerbs } from './claim-ends.ts'
import { claimVerbs } from './claims.ts'
import { CONNECTIONS_DEFAULT, Database, ms, sql } from './database.ts'
import { executionVerbs } from './executions.ts'
import { guardVerbs } from './source-locks.ts'
import { inspectVerbs } from './inspect.ts'
import { listVerbs } from './lists.ts'
import { liveRunVerbs } from './live-runs.ts'
import { operationVerbs } from './operations.ts'
import { planVerbs } from './plan.ts'
import { presenceVerbs } from './presence.ts'
import { recoveryVerbs } from './recovery.ts'
import { replanVerbs } from './replan.ts'
import { revertVerbs } from './revert.ts'
import { runListVerbs } from './run-lists.ts'
import { runMoveVerbs } from './run-moves.ts'
import { runVerbs } from './runs.ts'
import { retentionVerbs } from './retention.ts'
import { sampleVerbs } from './samples.ts'
import { sessionVerbs } from './sessions.ts'
import { settleVerbs } from './settle.ts'
import { survey } from './probe.ts'
import { storageVerbs } from './storages.ts'
import { totalVerbs } from './totals.ts'
import { deadLetterVerbs } from './dead-letters.ts'
import { turnVerbs } from './leaders.ts'
import { workerVerbs } from './workers.ts'

const NOW = sql('now', `SELECT ${ms('clock_timestamp()')} AS now`)

/** Opens the database at an address, bringing its schema up to date. */
export async function openPostgres(
  text: string,
  { writer = '', connections, readOnly = false }: OpenOptions = {},
): Promise<Store> {
  const address = parseAddress(text)
  const { pooled } = await survey(address, readOnly)
  const db = new Database(address, {
    writer,
    connections: connections ?? address.connections ?? CONNECTIONS_DEFAULT,
    pooled,
    accepts: readOnly ? 'any' : 'writable',
  })
  return {
    engine: 'postgres',
    where: address.where,
    remarks: pooled ? [POOLED] : [],
    away: [],
    now: async () => (await db.all<{ now: number }>(NOW))[0]!.now,
    ...runVerbs(db),
    ...runListVerbs(db),
    ...liveRunVerbs(db),
    ...planVerbs(db),
    ...settleVerbs(db),
    ...claimVerbs(db),
    ...beginVerbs(db),
    ...checkpointVerbs(db),
    ...claimEndVerbs(db),
    ...listVerbs(db),
    ...presenceVerbs(db),
    ...workerVerbs(db),
    ...turnVerbs(db),
    ...guardVerbs(db),
    ...executionVerbs(db),
    ...recoveryVerbs(db),
    ...runMoveVerbs(db),
    ...replanVerbs(db),
    ...revertVerbs(db),
    ...auditVerbs(db),
    ...totalVerbs(db),
    ...deadLetterVerbs(db),
    ...sampleVerbs(db),
    ...retentionVerbs(db),
    ...alertVerbs(db),
    ...operationVerbs(db),
    ...sessionVerbs(db),
    ...adoptedMemoryVerbs(db),
    ...storageVerbs(db),
    ...inspectVerbs(db),
    close: () => db.close(),
  }
}

const POOLED =
  'A connection pooler stands between unstuck and PostgreSQL: a dead worker on another host is known by its ' +
  'missing heartbeats alone, after a whole lease. A direct address makes that a few seconds.'
