// A crawl in Python under many kills: node test/python/storm.ts --kills 60 [--seed N] [--store sqlite|postgres]
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { newId } from '../../src/core/model/id.ts'
import { DEFAULT_POLICY } from '../../src/core/model/policy.ts'
import { Site, type Directory } from '../../src/features/chaos/demo/site.ts'
import { takeSnapshot } from '../../src/features/chaos/demo/worker-pool.ts'
import { openLedger } from '../../src/features/chaos/ledger.ts'
import { makeRandom, type Random } from '../../src/features/chaos/random.ts'
import { spreadFaults, type ScheduledFault } from '../../src/features/chaos/schedule.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { startServer } from '../../src/testing/postgres.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import type { Engine } from '../../src/testing/test-database.ts'
import { CLI, ProcessTestContext, waitFor } from '../processes/harness.ts'
import { LIBPQ } from './python.ts'
import {
  FROZEN,
  killOne,
  raiseZombie,
  ROLES,
  type FaultContext,
  type Kill,
  type Zombie,
} from './storm-faults.ts'
import { checkLedger, differences, readCrawled, readLedger, type Crawled } from './storm-ledger.ts'
import { makeExtent, type Extent } from './storm-site.ts'
import { SOURCE, Supervisors } from './storm-supervisors.ts'

export type StormSize = {
  readonly extent: Extent
  readonly kills: number
  readonly supervisors: number
  /** Commands of each supervisor. */
  readonly workers: number
  /** How many workers are stopped beyond their lease. */
  readonly zombies: number
  /** How much slower than usual the site is. */
  readonly slowdown: number
}

/** 300 targets, ten commands. */
export const WHOLE: StormSize = {
  extent: { states: 20, cities: 5, trades: 3 },
  kills: 60,
  supervisors: 5,
  workers: 2,
  zombies: 2,
  slowdown: 1,
}

export type StormOptions = StormSize & {
  readonly seed: number
  readonly log?: (line: string) => void
}

export type StormReport = {
  readonly directory: Directory
  readonly crawled: Crawled
  readonly reference: Crawled
  /** Written by the commands in their own transactions; null on SQLite. */
  readonly ledger: Awaited<ReturnType<typeof readLedger>> | null
  readonly kills: readonly Kill[]
  readonly zombies: readonly Zombie[]
  readonly deployMs: readonly number[]
  readonly refetched: number
}

const REFERENCE = fileURLToPath(new URL('../crash/crawl.ts', import.meta.url))
const REFERENCE_SLOWDOWN = 0.02
/** The kills are not the targets' fault. */
const LIMITS = { retries: 100, maxCrashes: 1_000 }
const POLICY = { heartbeat: '400ms', lease: '2s', backoff: '50ms', ...LIMITS } as const
const CREATE = 'CREATE TABLE storm_ledger (target text, page integer, visit text, pid integer)'

/** Crawls the site with Python, with kills, a deploy and a zombie, and then with TypeScript, without them. */
export async function runStorm(engine: Engine, options: StormOptions): Promise<StormReport> {
  const directory = makeExtent(options.seed, options.extent)
  await using ctx = await ProcessTestContext.create(engine)
  const site = await Site.open(directory, { slowdown: options.slowdown, holdsLastPage: true })
  try {
    const stormy = await crawlInStorm(ctx, site, directory, options)
    const reference = await crawlInTypeScript(engine, directory)
    return { directory, ...stormy, reference, refetched: site.stats.refetched }
  } finally {
    site.release()
    await site.close()
  }
}

async function crawlInStorm(
  ctx: ProcessTestContext,
  site: Site,
  { pages }: Directory,
  options: StormOptions,
) {
  const { seed, kills: killCount, zombies: zombieCount, log = () => {} } = options
  const store = await ctx.store()
  ctx.writeConfig({ [SOURCE]: POLICY })
  const hasLedger = ctx.engine.name === 'postgres'
  if (hasLedger) await ctx.database.raw(CREATE)
  const run = newId()
  await store.enqueue({
    id: run,
    source: SOURCE,
    kind: 'crawl',
    policy: { ...DEFAULT_POLICY, ...LIMITS },
  })
  const env = {
    STORM_SITE: site.address,
    ...(hasLedger && { STORM_LEDGER: ctx.database.url, LIBPQ }),
  }
  const supervisors = new Supervisors(ctx, { workers: options.workers, env })
  const random = makeRandom(seed)
  const faults: FaultContext = { ctx, store, run, random, log }
  const kills: Kill[] = []
  const zombies: Zombie[] = []
  const deployMs: number[] = []

  const inject = async (): Promise<void> => {
    for (const { kind, atShare } of schedule(killCount, random)) {
      const isDue = async (): Promise<boolean> =>
        (await store.run(run))!.counts.pages >= atShare * pages
      await waitFor(`${Math.round(atShare * 100)}% of the pages`, isDue)
      if (kind === 'kill') kills.push(await killOne(faults, ROLES[kills.length % ROLES.length]!))
      else if (kind === 'zombie') {
        while (zombies.length < zombieCount) {
          const frozen = FROZEN[(seed + zombies.length) % FROZEN.length]!
          zombies.push(await raiseZombie(faults, frozen))
        }
      } else {
        deployMs.push(await supervisors.deploy())
        log(`deploy: all had ended after ${Math.round(deployMs.at(-1)!)} ms`)
        await waitFor('work after the deploy', async () => {
          return (await takeSnapshot(store, run, SOURCE)).held.size > 0
        })
      }
    }
    site.release()
  }
  await Promise.all([inject(), supervisors.run(options.supervisors)])
  await ctx.assertNoProcessesLeft()
  const crawled = await readCrawled(ctx, run)
  return { crawled, ledger: hasLedger ? await readLedger(ctx) : null, kills, zombies, deployMs }
}

/** Workers are suspended early: another must have pages left to take over. */
const ZOMBIES_AT_SHARE = 0.2

function schedule(kills: number, random: Random): ScheduledFault[] {
  return spreadFaults(kills, random)
    .map((fault) => (fault.kind === 'zombie' ? { ...fault, atShare: ZOMBIES_AT_SHARE } : fault))
    .sort((a, b) => a.atShare - b.atShare)
}

/** The same site, by workers in TypeScript in one process that nothing happens to. */
async function crawlInTypeScript(engine: Engine, directory: Directory): Promise<Crawled> {
  await using ctx = await ProcessTestContext.create(engine)
  const site = await Site.open(directory, { slowdown: REFERENCE_SLOWDOWN })
  const ledger = await openLedger(engine.name, ctx.database.url, SOURCE)
  try {
    const env = {
      UNSTUCK_DEMO_SITE: site.address,
      UNSTUCK_DEMO_SOURCE: SOURCE,
      UNSTUCK_DEMO_ENGINE: engine.name,
    }
    const args = ['work', REFERENCE, '--drain', '--concurrency', '10']
    const program = ctx.start([CLI, ...args], { env })
    assert.equal(await program.waitForExit(), 0, program.output)
    return await readCrawled(ctx, (await ctx.run(SOURCE)).id)
  } finally {
    await Promise.all([site.close(), ledger.close()])
  }
}

/** Throws unless each page was saved once, late pages were refused, and the crawl equals that in TypeScript. */
export function assertUnharmed(
  report: StormReport,
  { kills, zombies: count }: Pick<StormSize, 'kills' | 'zombies'>,
): void {
  const { directory, crawled, reference, ledger, zombies } = report
  const clean = { lost: [], doubled: [], savedLate: [] }
  assert.deepEqual(checkLedger(directory, crawled.visits, zombies), clean)
  if (ledger) assert.deepEqual(checkLedger(directory, ledger, zombies), clean)
  assert.deepEqual(differences(reference, crawled), [])
  const saved = crawled.targets.reduce((sum, { page }) => sum + page, 0)
  assert.deepEqual([saved, crawled.run.counts.pages], [directory.pages, directory.pages])
  assert.equal(crawled.items.length, directory.businesses.size)
  assert.deepEqual([report.kills.length, zombies.length], [kills, count])
  for (const { isRefused, lateVisits } of zombies) {
    assert.ok(isRefused)
    // The visit that it was stopped in, at least.
    assert.ok(lateVisits.length > 0)
  }
}

const percentile = (ms: readonly number[], share: number): number =>
  ms.toSorted((a, b) => a - b)[Math.min(ms.length - 1, Math.floor(ms.length * share))] ?? 0

/** Returns what happened, as lines. */
export function describeStorm({ crawled, kills, zombies, ...rest }: StormReport): string[] {
  const times = (of: readonly Kill[], name: 'claimableMs' | 'reclaimedMs'): string => {
    const ms = of.flatMap((kill) => kill[name])
    return `median ${percentile(ms, 0.5)} ms, maximum ${Math.max(0, ...ms)} ms (${ms.length})`
  }
  const { pages, refused } = crawled.run.counts
  return [
    `${crawled.targets.length} targets, ${pages} pages saved, ${rest.refetched} fetched again`,
    `kill -9: ${kills.length}; from the kill to the next claim of its targets: ${times(kills, 'reclaimedMs')}`,
    `  until they could be claimed: ${times(kills, 'claimableMs')}`,
    ...ROLES.map((role) => {
      const those = kills.filter((kill) => kill.role === role)
      return `  of a ${role}: ${those.length}, ${times(those, 'reclaimedMs')}`
    }),
    `deploy: all ended after ${rest.deployMs.map((ms) => Math.round(ms)).join(', ')} ms`,
    `zombies: ${zombies.map(({ frozen, silentMs, lateVisits }) => `${frozen}, silent for ${Math.round(silentMs)} ms, ${lateVisits.length} late`).join('; ')}`,
    `refused by the fence, as counted by the run: ${refused}`,
  ]
}

/** From the kill to the next claim, on one host with nothing else to do. */
const RECOVERY_MAX_MS = 1_000

export function medianRecoveryMs({ kills }: StormReport): number {
  return percentile(
    kills.flatMap(({ reclaimedMs }) => reclaimedMs),
    0.5,
  )
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: String(WHOLE.kills) },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      store: { type: 'string', default: 'sqlite,postgres' },
    },
  })
  const [seed, kills] = [Number(values.seed), Number(values.kills)]
  const wanted = values.store.split(',')
  const server = wanted.includes('postgres') ? await startServer() : null
  if (server) process.env['UNSTUCK_TEST_PG'] = server.url
  try {
    for (const engine of [sqliteEngine, postgresEngine].filter((one) =>
      wanted.includes(one.name),
    )) {
      console.log(`${engine.name}: ${kills} kills, seed ${seed}`)
      const log = (line: string): void => console.log(`  ${line}`)
      const report = await runStorm(engine, { ...WHOLE, kills, seed, log })
      for (const line of describeStorm(report)) log(line)
      assertUnharmed(report, { ...WHOLE, kills })
      assert.ok(medianRecoveryMs(report) < RECOVERY_MAX_MS, 'the median recovery took too long')
      console.log(`${engine.name}: 0 pages lost, 0 doubled, equal to the crawl in TypeScript`)
    }
  } finally {
    await server?.remove()
  }
}

if (import.meta.main) await main()
