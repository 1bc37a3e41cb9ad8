import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { newId, shortId, type RunId } from '../model/id.ts'
import type { SavedItem } from '../model/item.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { Crew } from './crew.ts'
import { makeDirectory, type Directory } from './directory.ts'
import { openLedger } from './ledger.ts'
import { lookAt } from './lookout.ts'
import type { Headline, Narrator } from './narrator.ts'
import { pause, until } from './pause.ts'
import { makeDice } from './random.ts'
import { makeReport, type Report } from './report.ts'
import { expectedMs, makeSchedule, paceFor } from './schedule.ts'
import { Site } from './site.ts'
import type { Stage } from './stage.ts'
import { Story } from './story.ts'

export type DemoOptions = {
  readonly targets: number
  readonly workers: number
  readonly kills: number
  readonly seed: number
  /** Null: a database of its own, in its own folder. */
  readonly db: string | null
  /** Where all demos keep what they leave behind. */
  readonly home: string
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
const STOPPING = 'stopping the workers; once more ends them at once'
const START_PATIENCE_MS = 30_000

/**
 * The whole story: a site, a crew that crawls it, and everything that is done to the crew. Leaves no process behind.
 * Null when it was interrupted: then there is nothing to report.
 */
export async function runDemo(options: DemoOptions): Promise<DemoEnd | null> {
  const { seed, workers, kills } = options
  const id = shortId(newId())
  const source = `demo-${id}`
  const folder = join(options.home, id)
  mkdirSync(folder, { recursive: true })
  const db = options.db ?? `sqlite:${join(folder, 'unstuck.db')}`
  const truth = makeDirectory(seed, options.targets)
  const size = { pages: truth.pages, targets: truth.targets.length, workers, kills }
  const pace = paceFor(size)

  await using closing = new AsyncDisposableStack()
  const store = await openStore(db)
  closing.defer(() => store.close())
  const { engine } = store
  const ledger = await openLedger(engine, db, source)
  closing.defer(() => ledger.close())
  const site = await Site.open(truth, pace)
  closing.defer(() => site.close())
  const crew = new Crew({
    workers,
    db,
    journal: join(folder, 'journal'),
    log: join(folder, 'workers.log'),
    accidentsMax: kills + 5,
    env: {
      UNSTUCK_DEMO_SITE: site.address,
      UNSTUCK_DEMO_SOURCE: source,
      UNSTUCK_DEMO_ENGINE: engine,
    },
  })
  const killCrew = (): void => crew.kill()
  process.once('exit', killCrew)
  closing.defer(() => void process.off('exit', killCrew))
  closing.defer(() => crew.stop())

  const startedAt = performance.now()
  const story = new Story({
    kills,
    workers,
    pages: truth.pages,
    expectedMs: expectedMs(size, pace),
  })
  const narrator = options.narrator({
    title: `unstuck demo: ${workers} workers, ${truth.targets.length} targets, ${engine}, seed ${seed}`,
    pages: truth.pages,
    startedAt,
    deeds: () => deedsSoFar(story),
  })
  options.interrupted.addEventListener('abort', () => narrator.tell(STOPPING))
  let isTold = false
  const endStory = async (): Promise<void> => {
    if (!isTold) await narrator.close()
    isTold = true
  }
  closing.defer(endStory)

  const ended = new AbortController()
  const working = crew.run().finally(() => ended.abort())
  const over = AbortSignal.any([ended.signal, options.interrupted])
  const run = await until(async () => (await store.liveRun(source))?.id, {
    everyMs: 20,
    atMostMs: START_PATIENCE_MS,
    over,
  })
  if (run === null && !options.interrupted.aborted) {
    throw new Error(
      `The workers did not start. What they said is in ${join(folder, 'workers.log')}`,
    )
  }
  if (run === null) return null
  crew.hasRun = true

  const stage: Stage = {
    store,
    run,
    crew,
    site,
    narrator,
    over,
    dice: makeDice(seed),
    look: async () => {
      const look = await lookAt(store, run, source)
      crew.remember(look.workers)
      narrator.show(look)
      return look
    },
  }
  const showing = keepShowing(stage)
  await story.play(stage, makeSchedule(kills, makeDice(seed + 1)))
  await Promise.race([working, untilAborted(options.interrupted)])
  await showing
  if (options.interrupted.aborted) {
    await crew.stop()
    return null
  }
  const tookMs = performance.now() - startedAt
  await endStory()

  const found = {
    run: (await store.run(run))!,
    ledger: await ledger.rows(),
    items: await allItems(store, source),
  }
  const report = makeReport(truth, found, story, site.visits)
  writeFileSync(join(folder, 'deeds.json'), JSON.stringify(story, null, 2))
  return { report, truth, story, tookMs, source, run, db, engine, folder }
}

function deedsSoFar({ kills, killsAsked, deploys, zombies, slowestRecoveryMs }: Story): string {
  const slowest =
    slowestRecoveryMs === null ? '' : `, slowest recovery ${Math.round(slowestRecoveryMs)} ms`
  return `kill -9: ${kills.length} of ${killsAsked}, deploys: ${deploys.length}, zombies: ${zombies.length}${slowest}`
}

/** Beside the acts, so that the screen lives while they wait. */
async function keepShowing({ look, over }: Stage): Promise<void> {
  while (!over.aborted) {
    // A look that fails is no reason to end: the acts look too, and what is wrong shows in the end.
    await look().catch(() => {})
    await pause(SHOW_EVERY_MS, over)
  }
}

async function allItems(store: Store, source: string): Promise<SavedItem[]> {
  const items: SavedItem[] = []
  for (;;) {
    const batch = await store.items(source, items.at(-1)?.key ?? null, 1_000)
    items.push(...batch)
    if (batch.length < 1_000) return items
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
