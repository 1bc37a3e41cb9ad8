import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunId } from '../../../core/model/id.ts'
import type { Store } from '../../../core/store/store.ts'
import { plural } from '../../../presenters/format.ts'
import type { Directory } from './directory.ts'
import { readFindings } from './results.ts'
import { lookAt } from './snapshot.ts'
import type { Headline, Narrator } from './reporter.ts'
import { pause, until } from './pause.ts'
import { makeDice } from './random.ts'
import { makeReport, type Report } from './report.ts'
import { expectedMs, makeSchedule } from './schedule.ts'
import { openSetting, type Setting, type SettingOptions } from './context.ts'
import type { Stage } from './scenario-context.ts'
import { Story } from './scenario.ts'

export type DemoOptions = SettingOptions & {
  readonly narrator: (headline: Headline) => Narrator
  /** Ctrl-C. */
  readonly interrupted: AbortSignal
}

export type DemoEnd = {
  readonly report: Report
  readonly truth: Directory
  readonly story: Story
  readonly tookMs: number
  readonly source: string
  readonly run: RunId
  readonly db: string
  readonly engine: Store['engine']
  readonly folder: string
}

const SHOW_EVERY_MS = 100
const START_PATIENCE_MS = 30_000
const STOPPING = 'stopping the workers; once more ends them at once'

/**
 * The whole story: a site, a crew that crawls it, and everything that is done to the crew. Leaves no process behind.
 * Null when it was interrupted: then there is nothing to report.
 */
export async function runDemo(options: DemoOptions): Promise<DemoEnd | null> {
  await using setting = await openSetting(options)
  const { truth, store, size, source, folder, db } = setting
  const startedAt = performance.now()
  const story = new Story({ ...size, expectedMs: expectedMs(size, setting.pace) })
  const narrator = options.narrator({
    title: `unstuck demo: ${plural(size.workers, 'worker')}, ${plural(size.targets, 'target')}, ${store.engine}, seed ${options.seed}`,
    dashboard: setting.dashboard,
    pages: size.pages,
    startedAt,
    deeds: () => story.soFar(),
  })
  options.interrupted.addEventListener('abort', () => narrator.tell(STOPPING))
  let run: RunId | null
  try {
    run = await playStory(setting, story, narrator, options)
    if (options.interrupted.aborted) await setting.crew.stop()
  } finally {
    await narrator.close()
  }
  if (run === null || options.interrupted.aborted) return null

  const tookMs = performance.now() - startedAt
  const found = await readFindings(store, setting.ledger, run, source)
  const report = makeReport(truth, found, story, setting.site.visits)
  writeFileSync(join(folder, 'deeds.json'), JSON.stringify(story, null, 2))
  return { report, truth, story, tookMs, source, run, db, engine: store.engine, folder }
}

/** From the first page to the last, or to Ctrl-C. Answers the run; null when it was interrupted before there was one. */
async function playStory(
  { store, source, folder, crew, site, size }: Setting,
  story: Story,
  narrator: Narrator,
  { interrupted, seed }: DemoOptions,
): Promise<RunId | null> {
  const ended = new AbortController()
  const working = crew.run().finally(() => ended.abort())
  const over = AbortSignal.any([ended.signal, interrupted])
  const run = await until(async () => (await store.liveRun(source))?.id, {
    everyMs: 20,
    atMostMs: START_PATIENCE_MS,
    over,
  })
  if (run === null) {
    if (interrupted.aborted) return null
    const log = join(folder, 'workers.log')
    throw new Error(`The workers did not start. What they said is in ${log}`)
  }
  crew.hasRun = true
  const look: Stage['look'] = async () => {
    const look = await lookAt(store, run, source)
    crew.remember(look.workers)
    narrator.show(look)
    return look
  }
  const stage: Stage = { store, run, crew, site, narrator, over, look, dice: makeDice(seed) }
  const showing = keepShowing(stage)
  await story.play(stage, makeSchedule(size.kills, makeDice(seed + 1)))
  await Promise.race([working, untilAborted(interrupted)])
  await showing
  return run
}

/** Beside the acts, so that the screen lives while they wait. */
async function keepShowing({ look, over }: Stage): Promise<void> {
  while (!over.aborted) {
    // A look that fails is no reason to end: the acts look too, and what is wrong shows in the end.
    await look().catch(() => {})
    await pause(SHOW_EVERY_MS, over)
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
