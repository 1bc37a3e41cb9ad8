import process from 'node:process'
import { loadSettings } from '../../../app/config.ts'
import { lookAtHost } from '../../../core/host/identity.ts'
import { lookAtDatabase } from '../../../core/store/open.ts'
import type { EngineFacts, Inspection } from '../../../core/store/inspection.ts'
import type { Store } from '../../../core/store/store.ts'
import type { Database } from '../../../app/open-database.ts'
import { rollCall } from '../../../presenters/workers.ts'
import { adoptedFindings } from './adopted.ts'
import {
  missingFinding,
  reachedFinding,
  refusedFinding,
  schemaFinding,
  unreachedFinding,
  writableFinding,
} from './database.ts'
import { obstacleTo, volumesOf } from './disks.ts'
import { durabilityFinding } from './durability.ts'
import type { Finding } from './finding.ts'
import { platformFinding } from './platform.ts'
import { readProcessTable } from './process-table.ts'
import { probeTracking, trackingFinding } from './process-tracking.ts'
import { promiseFindings } from './promises.ts'
import { serverFindings } from './server.ts'
import { addressFinding, attempt, configFinding, runtimeFinding } from './set-up.ts'
import { signalsFinding } from './signals.ts'
import {
  diskFinding,
  fileSystemFinding,
  lockFilesFinding,
  sizeFinding,
  walFinding,
  unseenDiskFinding,
} from './storage.ts'
import { isAtWork, workersFinding } from './workers.ts'

/** Gathers the facts and has each judged. What fails is a finding too: the other checks go on. */
export async function examine(database: Database, cwd: string): Promise<Finding[]> {
  const config = await attempt(() => loadSettings(cwd))
  const located = await attempt(() => database.locate())
  const address = 'value' in located ? located.value.address : null
  return [
    runtimeFinding(process.versions.node, process.versions['sqlite']),
    configFinding(config),
    addressFinding(located, config),
    ...(address === null ? [] : await examineDatabase(database, address)),
    ...(address === null || !('value' in config)
      ? []
      : await adoptedFindings(config.value.adopted, address)),
    ...(await examineDisks(address, cwd)),
    platformFinding(lookAtHost(), address),
    signalsFinding(readProcessTable()),
    trackingFinding(probeTracking()),
  ]
}

async function examineDisks(address: string | null, cwd: string): Promise<Finding[]> {
  const volumes = await attempt(async () => volumesOf(address, cwd))
  return 'value' in volumes ? volumes.value.map(diskFinding) : [unseenDiskFinding(volumes.error)]
}

async function examineDatabase(database: Database, address: string): Promise<Finding[]> {
  const looked = await attempt(() => lookAtDatabase(address))
  if ('error' in looked) return [unreachedFinding(looked.error)]
  const look = looked.value
  const { where, engine } = look
  if (!engine) return [missingFinding(where, obstacleTo(where))]
  // Opening would migrate an older schema and refuse a newer one: both are told without it.
  const isCurrent = look.version === look.known
  const inside = isCurrent ? await attempt(async () => examineStore(await database.open())) : null
  const seen = inside && 'value' in inside ? inside.value : null
  return [
    reachedFinding(where, engine),
    writableFinding(where, engine),
    schemaFinding(look),
    durabilityFinding(engine, seen?.inspection.durability ?? null),
    ...(engine.name === 'sqlite'
      ? [fileSystemFinding(engine)]
      : serverFindings(engine, seen?.atWork ?? 0)),
    sizeFinding(engine),
    ...(inside && 'error' in inside ? [refusedFinding(inside.error)] : []),
    ...(seen ? insideFindings(engine, seen) : []),
  ]
}

type Inside = {
  readonly inspection: Inspection
  readonly workers: Finding
  readonly atWork: number
}

async function examineStore(store: Store): Promise<Inside> {
  const inspection = await store.inspect()
  const now = await store.now()
  const workers = await rollCall(store, now)
  const atWork = workers.filter(isAtWork).length
  return { inspection, workers: workersFinding(workers, now), atWork }
}

function insideFindings(engine: EngineFacts, { inspection, workers }: Inside): Finding[] {
  const files =
    engine.name === 'sqlite'
      ? [lockFilesFinding(inspection.leftoverLocks), walFinding(engine, inspection.blockedWal)]
      : []
  return [...files, ...promiseFindings(inspection), workers]
}
