import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import type { CliContext } from '../../../contracts/command.ts'
import { newId, shortId, type RunId } from '../../../core/model/id.ts'
import { openStore } from '../../../core/store/open.ts'
import { plural } from '../../../presenters/format.ts'
import { openLedger } from '../ledger.ts'
import { pollUntil, whenAborted } from '../poll.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { makeRandom } from '../random.ts'
import { expectedMs, slowdownFor, spreadFaults } from '../schedule.ts'
import { makeReport, readResults } from './report.ts'
import type { Headline, Reporter } from './reporter.ts'
import { Scenario, type ScenarioContext } from './scenario.ts'
import { makeDirectory, Site } from './site.ts'
import { takeSnapshot, WorkerPool } from './worker-pool.ts'

export type DemoOptions = {
  readonly targets: number
  readonly workers: number
  readonly kills: number
  readonly seed: number
  /** Null: a new SQLite file in the demo's folder. */
  readonly db: string | null
  /** The folder that all demos write to. */
  readonly home: string
  /** Serves the dashboard while the demo runs. */
  readonly openDashboard: CliContext['openDashboard']
  readonly reporter: (headline: Headline) => Reporter
  /** Fires on Ctrl-C. */
  readonly interrupted: AbortSignal
}

const STATUS_INTERVAL_MS = 100
const START_TIMEOUT_MS = 30_000
const STOPPING = 'stopping the workers; press Ctrl-C again to kill them'

export type DemoResult = NonNullable<Awaited<ReturnType<typeof runDemo>>>

/**
 * Crawls a built-in site with workers, injects faults into them, and compares the result with the site. Leaves no process
 * behind. Returns null when it was interrupted.
 */
export async function runDemo(options: DemoOptions) {
  await using context = await openDemoContext(options)
  const { expected, store, size, source, folder, db } = context
  const startedAt = performance.now()
  const scenario = new Scenario({ ...size, expectedMs: expectedMs(size, context.slowdown) })
  const reporter = options.reporter({
    title: `unstuck demo: ${plural(size.workers, 'worker')}, ${plural(size.targets, 'target')}, ${store.engine}, seed ${options.seed}`,
    dashboard: context.dashboard,
    pages: size.pages,
    startedAt,
    faultSummary: () => scenario.summary(),
  })
  options.interrupted.addEventListener('abort', () => reporter.log(STOPPING))
  let run: RunId | null
  try {
    run = await runCrawl(context, scenario, reporter, options)
    if (options.interrupted.aborted) await context.workerPool.stop()
  } finally {
    await reporter.close()
  }
  if (run === null || options.interrupted.aborted) return null

  const tookMs = performance.now() - startedAt
  const results = await readResults(store, context.ledger, run, source)
  const report = makeReport(expected, results, scenario, context.site.stats)
  writeFileSync(join(folder, 'faults.json'), JSON.stringify(scenario, null, 2))
  return { report, expected, scenario, tookMs, source, run, db, engine: store.engine, folder }
}

/** Runs until the last page or Ctrl-C. Returns the run; null when it was interrupted before there was one. */
async function runCrawl(
  { store, source, folder, workerPool, site, size }: DemoContext,
  scenario: Scenario,
  reporter: Reporter,
  { interrupted, seed }: DemoOptions,
): Promise<RunId | null> {
  const ended = new AbortController()
  const working = workerPool.run().finally(() => ended.abort())
  const over = AbortSignal.any([ended.signal, interrupted])
  const run = await pollUntil(async () => (await store.liveRun(source))?.id, {
    everyMs: 20,
    timeoutMs: START_TIMEOUT_MS,
    signal: over,
  })
  if (run === null) {
    if (interrupted.aborted) return null
    const log = join(folder, 'workers.log')
    throw new Error(`The workers did not start. Their output is in ${log}`)
  }
  workerPool.hasRun = true
  const snapshot: ScenarioContext['snapshot'] = async () => {
    const current = await takeSnapshot(store, run, source)
    reporter.update(current)
    return current
  }
  const context: ScenarioContext = {
    store,
    run,
    workerPool,
    site,
    reporter,
    over,
    snapshot,
    random: makeRandom(seed),
  }
  const reporting = keepReporting(context)
  await scenario.run(context, spreadFaults(size.kills, makeRandom(seed + 1)))
  await Promise.race([working, whenAborted(interrupted)])
  await reporting
  return run
}

/** Updates the screen while faults wait. */
async function keepReporting({ snapshot, over }: ScenarioContext): Promise<void> {
  while (!over.aborted) {
    // A failed read does not end the demo: its cause shows in the report.
    await snapshot().catch(() => {})
    await REAL_CLOCK.sleep(STATUS_INTERVAL_MS, over)
  }
}

type DemoContext = Awaited<ReturnType<typeof openDemoContext>>

/** How often `unstuck work` itself may be killed from outside. */
const RESTARTS_MAX = 5

/** Opens everything that the demo uses. Disposing the result ends every process and connection. */
async function openDemoContext(options: DemoOptions) {
  const { seed, workers, kills } = options
  const id = shortId(newId())
  // Unique: nothing else in the database is touched.
  const source = `demo-${id}`
  const folder = join(options.home, id)
  mkdirSync(folder, { recursive: true })
  const db = options.db ?? `sqlite:${join(folder, 'unstuck.db')}`
  const expected = makeDirectory(seed, options.targets)
  const size = { pages: expected.pages, targets: expected.targets.length, workers, kills }
  const slowdown = slowdownFor(size)

  await using stack = new AsyncDisposableStack()
  const store = await openStore(db)
  stack.defer(() => store.close())
  const dashboard = await options.openDashboard(store, folder)
  stack.defer(() => dashboard.close())
  const ledger = await openLedger(store.engine, db, source)
  stack.defer(() => ledger.close())
  const site = await Site.open(expected, { slowdown })
  stack.defer(() => site.close())
  const workerPool = new WorkerPool({
    workers,
    db,
    journal: join(folder, 'journal'),
    logPath: join(folder, 'workers.log'),
    // A single worker is `unstuck work` itself, which the demo kills.
    maxRestarts: kills + RESTARTS_MAX,
    env: {
      UNSTUCK_DEMO_SITE: site.address,
      UNSTUCK_DEMO_SOURCE: source,
      UNSTUCK_DEMO_ENGINE: store.engine,
    },
  })
  const killPool = (): void => workerPool.kill()
  process.once('exit', killPool)
  stack.defer(() => void process.off('exit', killPool))
  stack.defer(() => workerPool.stop())

  const open = stack.move()
  return {
    source,
    folder,
    db,
    expected,
    size,
    slowdown,
    store,
    ledger,
    site,
    workerPool,
    dashboard: dashboard.url,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
