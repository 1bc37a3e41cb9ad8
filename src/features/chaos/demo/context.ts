import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { newId, shortId } from '../../../core/model/id.ts'
import { openStore } from '../../../core/store/open.ts'
import type { Store } from '../../../core/store/store.ts'
import { WorkerPool } from './worker-pool.ts'
import { openDashboard } from './dashboard.ts'
import { makeDirectory, type Directory } from './directory.ts'
import { openLedger, type Ledger } from './ledger.ts'
import { slowdownFor, type DemoSize } from './schedule.ts'
import { Site } from './site.ts'

export type DemoContextOptions = {
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
export type DemoContext = AsyncDisposable & {
  /** A name of its own: nothing else in the database is touched. */
  readonly source: string
  readonly folder: string
  readonly db: string
  readonly expected: Directory
  readonly size: DemoSize
  readonly slowdown: number
  readonly store: Store
  readonly ledger: Ledger
  readonly site: Site
  readonly workerPool: WorkerPool
  /** Where it can be watched in a browser. */
  readonly dashboard: string
}

/** How often `unstuck work` itself may be ended by others. */
const RESTARTS_MAX = 5

export async function openDemoContext(options: DemoContextOptions): Promise<DemoContext> {
  const { seed, workers, kills } = options
  const id = shortId(newId())
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
  const dashboard = await openDashboard(store, folder)
  stack.defer(() => dashboard.close())
  const ledger = await openLedger(store.engine, db, source)
  stack.defer(() => ledger.close())
  const site = await Site.open(expected, slowdown)
  stack.defer(() => site.close())
  const workerPool = new WorkerPool({
    workers,
    db,
    journal: join(folder, 'journal'),
    logPath: join(folder, 'workers.log'),
    // A single worker is `unstuck work` itself, and it is us who kill it.
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
