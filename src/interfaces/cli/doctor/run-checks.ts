import process from 'node:process'
import { loadSettings } from '../../../app/config.ts'
import type { Database } from '../../../contracts/database.ts'
import type { Settings } from '../../../contracts/settings.ts'
import type { Feature } from '../../../contracts/feature.ts'
import { FEATURES } from '../../../features/index.ts'
import { readHostFacts, platformFinding, readProcessTable, signalsFinding } from './platform.ts'
import { type Inspection, INSPECTION_STORE } from '../../../features/inspection/store/store.ts'
import { makePolicyOf, NO_OVERRIDES } from '../../../core/model/policy-of.ts'
import { currentUser } from '../../../lib/process/this-process.ts'
import { contextFor } from '../../../app/open-context.ts'
import { loadOverview, presentOverview } from '../../../presenters/overview.ts'
import { workerViews } from '../../../presenters/workers.ts'
import {
  missingFinding,
  reachedFinding,
  refusedFinding,
  schemaFinding,
  unreachedFinding,
  writableFinding,
  serverFindings,
} from './database.ts'
import {
  obstacleTo,
  volumesOf,
  diskFinding,
  fileSystemFinding,
  lockFilesFinding,
  sizeFinding,
  walFinding,
  unreadableDiskFinding,
  durabilityFinding,
} from './storage.ts'
import { attempt, type Attempt, type Finding } from '../../../contracts/finding.ts'
import { guaranteeFindings } from '../../../features/inspection/guarantees.ts'
import { addressFinding, configFinding, runtimeFinding } from './configuration.ts'
import { isWorking, runsFinding, workersFinding } from './workers.ts'
import {
  readDatabaseInfo,
  type EngineFacts,
} from '../../../features/inspection/store/database-info.ts'

/** Runs all checks. A check that fails is a finding, and the others continue. */
export async function runChecks(database: Database, cwd: string): Promise<Finding[]> {
  const config = await attempt(() => loadSettings(cwd))
  const located = await attempt(() => database.locate())
  const address = 'value' in located ? located.value.address : null
  return [
    runtimeFinding(process.versions.node, process.versions['sqlite']),
    configFinding(config),
    addressFinding(located, config),
    ...(address === null ? [] : await checkDatabase(database, address, config)),
    ...(await checkFeatures((one) =>
      one.checks?.({ settings: 'value' in config ? config.value : null, address }),
    )),
    ...(await checkDisks(address, cwd)),
    platformFinding(readHostFacts(), address),
    signalsFinding(readProcessTable()),
  ]
}

/** Collects the findings of all features. */
export async function checkFeatures(
  check: (feature: Feature) => Promise<readonly Finding[]> | undefined,
): Promise<Finding[]> {
  return (await Promise.all(FEATURES.map(async (one) => (await check(one)) ?? []))).flat()
}

async function checkDisks(address: string | null, cwd: string): Promise<Finding[]> {
  const volumes = await attempt(async () => volumesOf(address, cwd))
  return 'value' in volumes
    ? volumes.value.map(diskFinding)
    : [unreadableDiskFinding(volumes.error)]
}

async function checkDatabase(
  database: Database,
  address: string,
  config: Attempt<Settings>,
): Promise<Finding[]> {
  const probed = await attempt(() => readDatabaseInfo(address))
  if ('error' in probed) return [unreachedFinding(probed.error)]
  const look = probed.value
  const { where, engine } = look
  if (!engine) return [missingFinding(where, obstacleTo(where))]
  // Opening would migrate an older schema and reject a newer one; both are reported without opening.
  const isCurrent = look.version === look.known
  const storeChecks = isCurrent ? await attempt(() => checkStore(database, config)) : null
  const seen = storeChecks && 'value' in storeChecks ? storeChecks.value : null
  return [
    reachedFinding(where, engine),
    writableFinding(where, engine),
    schemaFinding(look),
    durabilityFinding(engine, seen?.inspection.durability ?? null),
    ...(engine.name === 'sqlite'
      ? [fileSystemFinding(engine)]
      : serverFindings(engine, seen?.workingCount ?? 0)),
    sizeFinding(engine),
    ...(storeChecks && 'error' in storeChecks ? [refusedFinding(storeChecks.error)] : []),
    ...(seen ? storeFindings(engine, seen) : []),
  ]
}

type StoreChecks = {
  readonly inspection: Inspection
  readonly runs: Finding
  readonly workers: Finding
  readonly workingCount: number
}

/** Without a valid config the runs of features are unknown, and the stored policies apply. */
async function checkStore(database: Database, config: Attempt<Settings>): Promise<StoreChecks> {
  const settings = 'value' in config ? config.value : null
  const store = settings ? await database.openAll() : await database.open()
  const policies = settings ?? { policyOf: makePolicyOf(NO_OVERRIDES) }
  const context = contextFor(store, policies, currentUser(), process.cwd())
  const inspection = await (await store.extend(INSPECTION_STORE)).inspect()
  const overview = await loadOverview(context)
  const workers = workerViews(overview.assessment)
  return {
    inspection,
    runs: runsFinding(presentOverview(overview)),
    workers: workersFinding(workers),
    workingCount: workers.filter(isWorking).length,
  }
}

function storeFindings(engine: EngineFacts, { inspection, runs, workers }: StoreChecks): Finding[] {
  const files =
    engine.name === 'sqlite'
      ? [lockFilesFinding(inspection.leftoverLocks), walFinding(engine, inspection.blockedWal)]
      : []
  return [...files, ...guaranteeFindings(inspection), runs, workers]
}
