import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newId } from '../../../core/model/id.ts'
import {
  assertAllOk,
  beginOne,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  unwrap,
  savePage,
  makeItems,
  SOURCE,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended, type Engine, type TestDatabase } from '../../../testing/test-database.ts'
import type { Store } from '../../../core/store/store.ts'
import { METRICS_STORE, type MetricsStore, type Sample, type SampleFilter } from './store.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

for (const engine of [sqliteEngine, postgresEngine])
  describe(engine.name, () => metricsTests(engine))

function metricsTests(engine: Engine): void {
  test('samples tell how far each live run was, in the order of time', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const run = await enqueueCrawl(store, 3)
    const other = await enqueueCrawl(store, 1, { source: 'other' })
    const [one, two] = await claim(store, await registerWorker(store), 2)
    const told: [number, number, number][] = []
    const look = async (): Promise<void> => {
      await store.takeSample()
      const { counts } = (await store.run(run))!
      told.push([counts.pages, counts.itemsNew + counts.itemsUpdated, counts.targets.done])
      await db.advanceClock(MINUTE_MS)
    }

    await look()
    const next = await savePage(store, one!, { items: makeItems(0, 3) })
    await look()
    await savePage(store, next, { items: makeItems(2, 2, { changed: true }), done: true })
    await savePage(store, two!)
    await look()

    assert.deepEqual(told, [
      [0, 0, 0],
      [1, 3, 0],
      [3, 5, 1],
    ])
    assert.deepEqual(counts(await since(store, { run })), told)
    assert.deepEqual(await since(store, { source: SOURCE }), await since(store, { run }))
    assert.deepEqual(counts(await since(store, { run: other })), Array(3).fill([0, 0, 0]))
    const all = await since(store, {})
    assert.equal(all.length, 6)
    assert.deepEqual(
      all.map(({ at }) => at),
      all.map(({ at }) => at).sort((a, b) => a - b),
    )
    assert.deepEqual(await since(store, { run: newId() }), [])
  })

  test('of a second a run has one sample, the latest, however many take it at once', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(
      Array.from({ length: 4 }, () => openExtended(db, METRICS_STORE)),
    )
    const [store] = stores as [Store & MetricsStore]
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    const before = await store.now()
    await Promise.all(stores.map((store) => store.takeSample()))
    await savePage(store, claimed)

    await Promise.all(stores.map((store) => store.takeSample()))

    const samples = await since(store, {})
    // A second may have ended between the two looks.
    const seconds = secondOf(await store.now()) - secondOf(before) + 1
    assert.ok(samples.length <= seconds, `${samples.length} samples in ${seconds} seconds`)
    assert.equal(samples.at(-1)!.pages, 1)
  })

  test('of what changed there is a sample each second; after an hour one per minute is left', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const run = await enqueueCrawl(store, 1)
    const still = await enqueueCrawl(store, 1, { source: 'still' })
    let claimed = await claimOne(store, await registerWorker(store))
    const pagesOf = async (id: string) =>
      (await since(store, { run: id })).map(({ pages }) => pages)
    for (let second = 0; second < 4; second++) {
      await store.takeSample({ onlyChanged: true })
      await db.advanceClock(1_000)
      if (second !== 1) claimed = await savePage(store, claimed)
    }
    assert.deepEqual(await pagesOf(run), [0, 1, 2])
    assert.deepEqual(await pagesOf(still), [0])

    const { at } = (await since(store, { run })).at(-1)!
    await store.prune({ minutesBefore: at - 5_000 })
    assert.equal((await since(store, { run })).length, 3, 'an hour has not passed')
    await store.prune({ minutesBefore: at + 60_000 })
    const left = await since(store, { run })
    assert.equal(left.at(-1)!.pages, 2, 'the last one of a minute stays')
    assert.equal(new Set(left.map((one) => Math.floor(one.at / MINUTE_MS))).size, left.length)
  })

  test('a sample of what changed keeps the one that the oldest run has of this second', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const still = await enqueueCrawl(store, 1, { source: 'still' })
    await store.takeSample()
    await db.advanceClock(MINUTE_MS)
    await store.takeSample()

    await store.takeSample({ onlyChanged: true })

    assert.equal((await since(store, { run: still })).length, 2)
  })

  test('a run that ended between two samples is taken once more, and then no longer', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const sampled = await enqueueCrawl(store, 1)
    await store.takeSample()
    await db.advanceClock(MINUTE_MS)
    const worker = await registerWorker(store)
    await savePage(store, await claimOne(store, worker), { items: makeItems(0, 2), done: true })
    const short = await beginOne(store, worker, { source: 'short' })
    await savePage(store, short, { items: makeItems(0, 1), done: true })
    const idle = await enqueueCrawl(store, 0, { source: 'idle' })
    await store.settle()
    for (let n = 0; n < 3; n++) {
      await store.takeSample()
      await db.advanceClock(MINUTE_MS)
    }

    assert.deepEqual(counts(await since(store, { run: sampled })), [
      [0, 0, 0],
      [1, 2, 1],
    ])
    assert.deepEqual(counts(await since(store, { run: short.run })), [[1, 1, 1]])
    assert.deepEqual(await since(store, { run: idle }), [], 'there is nothing to tell of it')
  })

  test('a run that was opened again and ended again is taken again', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 1)
    const claimed = await savePage(store, await claimOne(store, worker))
    assertAllOk(await store.fail([{ ...claimed, error: 'x', becomes: 'failed' }]))
    await store.settle()
    await store.takeSample()
    await db.advanceClock(MINUTE_MS)
    const auditInfo = { actor: 'a person', because: 'fixed', reopen: true, dryRun: false }
    await store.replan({ run, action: 'reset-failed', statuses: ['failed'], ...auditInfo })
    await savePage(store, await claimOne(store, await registerWorker(store)), { done: true })
    await store.settle()

    await store.takeSample()

    assert.deepEqual(counts(await since(store, { run })), [
      [1, 0, 0],
      [2, 0, 1],
    ])
  })

  test('of a run with one target a sample has the progress that it reported', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const claimed = await beginOne(store, await registerWorker(store))
    unwrap(await store.reportProgress(claimed, { done: 40, total: 100 }))

    await store.takeSample()

    assert.deepEqual(counts(await since(store, {})), [[0, 0, 40]])
  })

  test('a long look has the samples of every so many minutes, and the last of each run', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const now = Math.floor((await store.now()) / MINUTE_MS) * MINUTE_MS
    const hour = Math.floor(now / HOUR_MS) * HOUR_MS - HOUR_MS
    const [long, short] = [newId(), newId()]
    const at = (minutes: number) => hour + minutes * MINUTE_MS + 1_234
    await insert(db, engine, [
      ...[-60, -1, 0, 1, 30, 59, 60, 61].map((n) => ({ run: long, at: at(n), ended: false })),
      { run: long, at: at(95), ended: true },
      { run: short, at: at(10), ended: false },
      { run: short, at: at(11), ended: true },
    ])
    const minutes = async (filter: Partial<SampleFilter>): Promise<number[]> => {
      const range = { since: hour - HOUR_MS, until: hour + 2 * HOUR_MS }
      const samples = await store.samples({ ...range, ...filter })
      return samples.map(({ at }) => Math.floor((at - hour) / MINUTE_MS))
    }

    assert.deepEqual(await minutes({ everyMinutes: 60 }), [-60, 0, 11, 60, 95])
    assert.deepEqual(await minutes({ everyMinutes: 30, run: long }), [-60, 0, 30, 60, 95])
    const ofSource = await minutes({ everyMinutes: 60, source: SOURCE, since: hour })
    assert.deepEqual(ofSource, [0, 11, 60, 95])
    assert.equal((await minutes({ everyMinutes: 1 })).length, 11)
    assert.deepEqual(await minutes({ since: at(30), until: at(60) }), [30, 59, 60])
  })

  test('a run that stands still is written down once an hour, and the oldest at every look', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const now = await store.now()
    const stands = async (source: string, from: number, to: number, pages = 0) => {
      const run = await enqueueCrawl(store, 1, { source })
      const minutes = Array.from({ length: to - from + 1 }, (_, n) => from + n)
      const sample = (ago: number) => ({ run, at: now - ago * MINUTE_MS, ended: false, pages })
      await insert(db, engine, minutes.map(sample))
      return run
    }
    const oldest = await stands('oldest', 1, 45)
    const still = await stands('still', 1, 45)
    const stillShort = await stands('short', 1, 29)
    const lastHour = await stands('hour', 62, 90)
    const moved = await stands('moved', 1, 45, 7)
    const back = await stands('back', 31, 45)
    await insert(db, engine, [{ run: back, at: now - MINUTE_MS, ended: false, pages: 7 }])

    await store.takeSample()

    const looked = await store.samples({ since: now, until: 8e15 })
    const at = Math.floor(looked[0]!.at / HOUR_MS) * HOUR_MS
    const isNewHour = at > now - MINUTE_MS
    assert.deepEqual(
      looked.map(({ run }) => run).sort(),
      [oldest, ...(isNewHour ? [still] : []), stillShort, lastHour, moved, back].sort(),
    )
  })

  test('a process skips a sample that another one just took, unless no other is left', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, worker)
    const pages = async (): Promise<number> => (await since(store, {})).at(-1)?.pages ?? -1
    const look = () => store.takeSample({ unlessWithinMs: 10_000 })

    await look()
    assert.equal(await pages(), 0, 'no sample was taken before')
    const next = await savePage(store, claimed)
    await look()
    assert.equal(await pages(), 0)
    await db.advanceClock(10_000)
    await look()
    assert.equal(await pages(), 1)
    await savePage(store, next, { done: true })
    await store.retireWorker(worker)
    await look()
    assert.equal(await pages(), 2)
  })

  test('samples from before a time are forgotten, however many, and no others', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const now = await store.now()
    const ages = Array.from({ length: 4_100 }, (_, n) => ({
      run: newId(),
      at: now - n * MINUTE_MS,
      ended: false,
    }))
    await insert(db, engine, ages)

    assert.equal((await store.prune({ samplesBefore: now - 10 * MINUTE_MS })).samples, 4_100 - 11)

    assert.equal((await store.samples({ since: 0, until: now })).length, 11)
    assert.equal((await store.prune({ samplesBefore: now - 10 * MINUTE_MS })).samples, 0)
  })

  test('recoveries are counted per step, of all, of a run and of a source', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const run = await enqueueCrawl(store, 5)
    await enqueueCrawl(store, 1, { source: 'other' })
    const die = async (count: number, source = SOURCE): Promise<void> => {
      const worker = await registerWorker(store, { source })
      await claim(store, worker, count, { source })
      await recoverWorker(store, worker)
    }
    await die(3)
    await db.advanceClock(2 * HOUR_MS)
    await die(1)
    await die(1, 'other')
    const cancel = { to: 'cancelled', action: 'cancel', evidence: null, expected: {} } as const
    await store.moveRun({ run, ...cancel, actor: 'a person', because: 'not recovery' })
    const from = (await store.now()) - 3 * HOUR_MS
    const perHour = (filter: { run?: string; source?: string }) =>
      store.recoveriesPerStep({ since: from, stepMs: HOUR_MS, ...filter })

    const [first, last] = [from, from + 2 * HOUR_MS]
    assert.deepEqual(await perHour({}), [
      { at: first, count: 3 },
      { at: last, count: 2 },
    ])
    assert.deepEqual(await perHour({ run }), [
      { at: first, count: 3 },
      { at: last, count: 1 },
    ])
    assert.deepEqual(await perHour({ source: 'other' }), [{ at: last, count: 1 }])
    assert.deepEqual(await store.recoveriesPerStep({ since: last, stepMs: HOUR_MS, run }), [
      { at: last, count: 1 },
    ])
  })
}

function since(store: MetricsStore, filter: Partial<SampleFilter>): Promise<Sample[]> {
  return store.samples({ since: 0, until: 8e15, ...filter })
}

function counts(samples: readonly Sample[]): [number, number, number][] {
  return samples.map(({ pages, items, done }) => [pages, items, done])
}

function secondOf(at: number): number {
  return Math.floor(at / 1_000)
}

/** Samples of days that no test can wait for. */
async function insert(
  db: TestDatabase,
  engine: Engine,
  samples: readonly { run: string; at: number; ended: boolean; pages?: number }[],
): Promise<void> {
  const isSqlite = engine.name === 'sqlite'
  const rows = samples.map(({ run, at, ended, pages = 1 }) => {
    const when = isSqlite ? at : `to_timestamp(${at / 1_000})`
    return `(${when}, '${run}', '${SOURCE}', ${pages}, ${pages}, ${pages}, ${isSqlite ? Number(ended) : ended})`
  })
  await db.raw(`INSERT INTO ${db.table('sample')} VALUES ${rows.join(', ')}`)
}
