import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunId } from '../../../core/model/id.ts'
import type { Store } from '../../../core/store/store.ts'
import { plural } from '../../../presenters/format.ts'
import type { Directory } from './directory.ts'
import { readResults } from './results.ts'
import { takeSnapshot } from './snapshot.ts'
import type { Headline, Reporter } from './reporter.ts'
import { pause, pollUntil } from './pause.ts'
import { makeRandom } from './random.ts'
import { makeReport, type Report } from './report.ts'
import { expectedMs, makeSchedule } from './schedule.ts'
import { openDemoContext, type DemoContext, type DemoContextOptions } from './context.ts'
import type { ScenarioContext } from './scenario-context.ts'
import { Scenario } from './scenario.ts'

export type DemoOptions = DemoContextOptions & {
  readonly reporter: (headline: Headline) => Reporter
  /** Ctrl-C. */
  readonly interrupted: AbortSignal
}

export type DemoResult = {
  readonly report: Report
  readonly expected: Directory
  readonly scenario: Scenario
  readonly tookMs: number
  readonly source: string
  readonly run: RunId
  readonly db: string
  readonly engine: Store['engine']
  readonly folder: string
}

const STATUS_INTERVAL_MS = 100
const START_TIMEOUT_MS = 30_000
const STOPPING = 'stopping the workers; once more ends them at once'

/**
 * The whole story: a site, a crew that crawls it, and everything that is done to the crew. Leaves no process behind.
 * Null when it was interrupted: then there is nothing to report.
 */
export async function runDemo(options: DemoOptions): Promise<DemoResult | null> {
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
  writeFileSync(join(folder, 'deeds.json'), JSON.stringify(scenario, null, 2))
  return { report, expected, scenario, tookMs, source, run, db, engine: store.engine, folder }
}

/** From the first page to the last, or to Ctrl-C. Answers the run; null when it was interrupted before there was one. */
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
    throw new Error(`The workers did not start. What they said is in ${log}`)
  }
  workerPool.hasRun = true
  const snapshot: ScenarioContext['snapshot'] = async () => {
    const current = await takeSnapshot(store, run, source)
    workerPool.setWorkers(current.workers)
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
  await scenario.run(context, makeSchedule(size.kills, makeRandom(seed + 1)))
  await Promise.race([working, untilAborted(interrupted)])
  await reporting
  return run
}

/** Beside the acts, so that the screen lives while they wait. */
async function keepReporting({ snapshot, over }: ScenarioContext): Promise<void> {
  while (!over.aborted) {
    // A look that fails is no reason to end: the acts look too, and what is wrong shows in the end.
    await snapshot().catch(() => {})
    await pause(STATUS_INTERVAL_MS, over)
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
