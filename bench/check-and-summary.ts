import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { classifyRuns } from '../src/core/recovery/clean.ts'
import { adviseStart } from '../src/presenters/check.ts'
import { openStore } from '../src/core/store/open.ts'
import * as postgres from '../src/core/store/postgres/live-runs.ts'
import * as sqlite from '../src/core/store/sqlite/live-runs.ts'
import type { Store } from '../src/core/store/store.ts'
import {
  operatorContext,
  beginOne,
  claim,
  registerWorker,
  unwrap,
  enqueueSingle,
  savePage,
  enqueueCrawl,
} from '../src/testing/fixtures.ts'
import { benchEngines, type BenchEngine } from './databases.ts'
import { ENDED_RUNS, fillWithEndedRuns, runMaintenance } from './fill.ts'
import { median, print } from './figures.ts'

const ACTIVE = 1_000
const WORKERS = 20
const TRIES = 300
const WARM_UP = 50

/** What the pre-start check and the summary cost with a hundred thousand finished runs and a thousand active ones. */
export async function benchCheckAndSummary(engines: readonly string[]): Promise<void> {
  for (const engine of await benchEngines(engines)) {
    try {
      await measure(engine)
    } finally {
      await engine.close()
    }
  }
}

async function measure(engine: BenchEngine): Promise<void> {
  const db = await engine.create()
  const store = await openStore(db.url)
  await fillWithEndedRuns(db.url)
  const sources = await startRuns(store)
  await runMaintenance(db.url)
  const context = operatorContext(store)
  const check = await medianOf((n) => adviseStart(context, sources[(n * 7) % sources.length]!))
  const none = await medianOf((n) => adviseStart(context, `old-${n}`))
  const summary = await medianOf(() => classifyRuns(context))
  const raw = await (engine.name === 'sqlite' ? rawSqlite(db.url) : rawPostgres(db.url))
  const { total, active, resumable, dead } = await classifyRuns(context)
  const counted = { active: active.length, resumable: resumable.length, dead: dead.length }
  if (total !== ACTIVE) throw new Error(`${total} live runs instead of ${ACTIVE}`)
  print({
    bench: 'doors',
    engine: engine.name,
    'finished runs': ENDED_RUNS,
    'live runs': total,
    ...counted,
    'check ms': check.toFixed(2),
    'check of a source with no live run ms': none.toFixed(2),
    'summary ms': summary.toFixed(2),
    'the same rows raw ms': raw.toFixed(2),
  })
  await store.close()
  await db.drop()
}

async function medianOf(work: (n: number) => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < TRIES; n++) {
    const startedAt = performance.now()
    await work(n)
    times.push(performance.now() - startedAt)
  }
  return median(times.slice(WARM_UP))
}

/** The rows that a summary needs, by the driver alone: nothing is made of them. */
async function rawSqlite(url: string): Promise<number> {
  using db = new DatabaseSync(url.slice('sqlite:'.length))
  const statement = db.prepare(sqlite.LIVE_RUNS.text)
  return await medianOf(async () => statement.all())
}

async function rawPostgres(url: string): Promise<number> {
  const clients = [1, 2].map(() => new pg.Client({ connectionString: url }))
  await Promise.all(clients.map((client) => client.connect()))
  const statements = [postgres.LIVE_RUNS, postgres.LIVE_COUNTERS]
  const took = await medianOf(() =>
    Promise.all(statements.map(({ name, text }, n) => clients[n]!.query({ name, text }))),
  )
  await Promise.all(clients.map((client) => client.end()))
  return took
}

/** A thousand sources: queued, held, released with and without pages, and crawls with workers. */
async function startRuns(store: Store): Promise<string[]> {
  const workers = await Promise.all(
    Array.from({ length: WORKERS }, () =>
      registerWorker(store, { source: '', leaseMs: 3_600_000 }),
    ),
  )
  const sources = Array.from({ length: ACTIVE }, (_, n) => `active-${n}`)
  for (const [n, source] of sources.entries()) {
    const worker = workers[n % WORKERS]!
    if (n % 10 === 0) {
      await enqueueCrawl(store, 5, { source })
      await claim(store, worker, 2, { source })
    } else if (n % 10 < 3) await enqueueSingle(store, source)
    else {
      let claimed = await beginOne(store, worker, { source })
      if (n % 10 < 8) claimed = await savePage(store, claimed)
      if (n % 10 < 6) unwrap((await store.release([claimed]))[0]!)
    }
  }
  await store.settle()
  return sources
}
