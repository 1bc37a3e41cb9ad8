import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { newId, shortId } from '../../../core/model/id.ts'
import { openStore } from '../../../core/store/open.ts'
import type { Store } from '../../../core/store/store.ts'
import { Crew } from './worker-pool.ts'
import { openDashboard } from './dashboard.ts'
import { makeDirectory, type Directory } from './directory.ts'
import { openLedger, type Ledger } from './ledger.ts'
import { paceFor, type Size } from './schedule.ts'
import { Site } from './site.ts'

export type SettingOptions = {
  readonly targets: number
  readonly workers: number
  readonly kills: number
  readonly seed: number
  /** Null: a database of its own, in its own folder. */
  readonly db: string | null
  /** Where all demos keep what they leave behind. */
  readonly home: string
}

/** Where the story takes place. Disposed of, nothing of it runs any more. */
export type Setting = AsyncDisposable & {
  /** A name of its own: nothing else in the database is touched. */
  readonly source: string
  readonly folder: string
  readonly db: string
  readonly truth: Directory
  readonly size: Size
  readonly pace: number
  readonly store: Store
  readonly ledger: Ledger
  readonly site: Site
  readonly crew: Crew
  /** Where it can be watched in a browser. */
  readonly dashboard: string
}

/** How often `unstuck work` itself may be ended by others. */
const ACCIDENTS_MAX = 5

export async function openSetting(options: SettingOptions): Promise<Setting> {
  const { seed, workers, kills } = options
  const id = shortId(newId())
  const source = `demo-${id}`
  const folder = join(options.home, id)
  mkdirSync(folder, { recursive: true })
  const db = options.db ?? `sqlite:${join(folder, 'unstuck.db')}`
  const truth = makeDirectory(seed, options.targets)
  const size = { pages: truth.pages, targets: truth.targets.length, workers, kills }
  const pace = paceFor(size)

  await using stack = new AsyncDisposableStack()
  const store = await openStore(db)
  stack.defer(() => store.close())
  const dashboard = await openDashboard(store, folder)
  stack.defer(() => dashboard.close())
  const ledger = await openLedger(store.engine, db, source)
  stack.defer(() => ledger.close())
  const site = await Site.open(truth, pace)
  stack.defer(() => site.close())
  const crew = new Crew({
    workers,
    db,
    journal: join(folder, 'journal'),
    log: join(folder, 'workers.log'),
    // A single worker is `unstuck work` itself, and it is us who kill it.
    accidentsMax: kills + ACCIDENTS_MAX,
    env: {
      UNSTUCK_DEMO_SITE: site.address,
      UNSTUCK_DEMO_SOURCE: source,
      UNSTUCK_DEMO_ENGINE: store.engine,
    },
  })
  const killCrew = (): void => crew.kill()
  process.once('exit', killCrew)
  stack.defer(() => void process.off('exit', killCrew))
  stack.defer(() => crew.stop())

  const open = stack.move()
  return {
    source,
    folder,
    db,
    truth,
    size,
    pace,
    store,
    ledger,
    site,
    crew,
    dashboard: dashboard.url,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
