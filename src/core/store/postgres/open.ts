import type { OpenOptions } from '../open.ts'
import type { Store } from '../store.ts'
import { parseAddress } from './address.ts'
import { auditMethods } from './audit.ts'
import { beginMethods } from './begin.ts'
import { checkpointMethods } from './checkpoints.ts'
import { claimEndMethods } from './claim-ends.ts'
import { claimMethods } from './claims.ts'
import { CONNECTIONS_DEFAULT, Database, ms, sql } from './database.ts'
import { sourceLockMethods } from './source-locks.ts'
import { listMethods } from './lists.ts'
import { liveRunMethods } from './live-runs.ts'
import { planMethods } from './plan.ts'
import { presenceMethods } from './presence.ts'
import { recoveryMethods } from './recovery.ts'
import { replanMethods } from './replan.ts'
import { revertMethods } from './revert.ts'
import { runListMethods } from './run-lists.ts'
import { runMoveMethods } from './run-moves.ts'
import { runMethods } from './runs.ts'
import { retentionMethods } from './retention.ts'
import { sampleMethods } from './samples.ts'
import { settleMethods } from './settle.ts'
import { probeServer } from './probe.ts'
import { leaderMethods } from './leaders.ts'
import { workerMethods } from './workers.ts'

const NOW = sql('now')`SELECT ${ms('clock_timestamp()')} AS now`

/** Opens the database at an address, bringing its schema up to date. */
export async function openPostgres(
  text: string,
  { writer = '', connections, readOnly = false }: OpenOptions = {},
): Promise<Store> {
  const address = parseAddress(text)
  const { pooled } = await probeServer(address, readOnly)
  const db = new Database(address, {
    writer,
    connections: connections ?? address.connections ?? CONNECTIONS_DEFAULT,
    pooled,
    accepts: readOnly ? 'any' : 'writable',
  })
  return {
    engine: 'postgres',
    location: address.where,
    warnings: pooled ? [POOLED] : [],
    unreadable: [],
    now: async () => (await db.all<{ now: number }>(NOW))[0]!.now,
    ...runMethods(db),
    ...runListMethods(db),
    ...liveRunMethods(db),
    ...planMethods(db),
    ...settleMethods(db),
    ...claimMethods(db),
    ...beginMethods(db),
    ...checkpointMethods(db),
    ...claimEndMethods(db),
    ...listMethods(db),
    ...presenceMethods(db),
    ...workerMethods(db),
    ...leaderMethods(db),
    ...sourceLockMethods(db),
    ...recoveryMethods(db),
    ...runMoveMethods(db),
    ...replanMethods(db),
    ...revertMethods(db),
    ...auditMethods(db),
    ...sampleMethods(db),
    ...retentionMethods(db),
    extend: async (extension) => (await extension.postgres())(db),
    close: () => db.close(),
  }
}

const POOLED =
  'A connection pooler stands between unstuck and PostgreSQL: a dead worker on another host is known by its ' +
  'missing heartbeats alone, after a whole lease. A direct address makes that a few seconds.'
