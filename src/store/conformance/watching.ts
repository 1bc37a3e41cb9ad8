import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../model/id.ts'
import { RUN_STATUSES } from '../../model/run.ts'
import {
  allOk,
  begin,
  beginOne,
  bury,
  claim,
  claimOne,
  hire,
  save,
  someItems,
  SOURCE,
  startCrawl,
} from '../../testing/cast.ts'
import type { Engine } from '../../testing/test-database.ts'
import type { Store, TroubleFilter } from '../store.ts'

export function watchingTests(engine: Engine): void {
  test('all runs are counted by status, and those that no run is in are 0', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const none = Object.fromEntries(RUN_STATUSES.map((status) => [status, 0]))
    assert.deepEqual(await store.runTotals(), none)

    await startCrawl(store, 0)
    await store.settle()
    await startCrawl(store, 1)
    await startCrawl(store, 1, { source: 'other' })
    await begin(store, await hire(store), { source: 'single' })

    assert.deepEqual(await store.runTotals(), { ...none, succeeded: 1, queued: 2, running: 1 })
  })

  test('of each source that failed last the newest run is found, and of no other', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    assert.deepEqual(await store.lastFailed(), [])
    const worker = await hire(store)
    const failOne = async (source: string): Promise<string> => {
      const claimed = await beginOne(store, worker, { source })
      allOk(await store.fail([{ ...claimed, error: 'no', retryInMs: null }]))
      await store.settle()
      return claimed.run
    }
    await failOne('b')
    const last = await failOne('b')
    await failOne('followed')
    await begin(store, worker, { source: 'followed' })
    await failOne('mended')
    allOk(await store.finish([await beginOne(store, worker, { source: 'mended' })]))
    await store.settle()
    const newest = await failOne('a')

    const found = await store.lastFailed()

    assert.deepEqual(
      found.map(({ id, source, status }) => ({ id, source, status })),
      [
        { id: newest, source: 'a', status: 'failed' },
        { id: last, source: 'b', status: 'failed' },
      ],
    )
    assert.equal(found[0]!.counts.targets.failed, 1)
  })

  test('P14 the totals of targets are the sum of the books of all runs', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    assert.equal((await store.targetTotals()).pages, 0)
    await troubledRun(store)
    await troubledRun(store, 'other')
    const [claimed] = await claim(store, await hire(store), 1)
    await save(store, claimed!, { items: someItems(0, 4), skipped: 3 })
    await save(store, claimed!).catch(() => {})

    const totals = await store.targetTotals()

    const { items: runs } = await store.runs({ limit: 10 })
    for (const status of ['planned', 'in_progress', 'done', 'failed', 'stuck', 'parked'] as const) {
      const sum = runs.reduce((sum, run) => sum + run.counts.targets[status], 0)
      assert.equal(totals.targets[status], sum, status)
    }
    for (const name of ['pages', 'itemsNew', 'itemsUpdated', 'skipped', 'refused'] as const) {
      const sum = runs.reduce((sum, run) => sum + run.counts[name], 0)
      assert.equal(totals[name], sum, name)
    }
    assert.equal(totals.itemsNew, 4)
    assert.equal(totals.targets.failed, 6)
  })

  test('what is left for a person is counted by run, status and error, most first', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const before = await store.now()
    const run = await troubledRun(store)

    const troubles = await store.troubles({})

    assert.deepEqual(
      troubles.map(({ source, run, status, error, count }) => [source, run, status, error, count]),
      [
        [SOURCE, run, 'failed', 'HTTP 503', 2],
        ...troubles.slice(1).map(({ status, error }) => [SOURCE, run, status, error, 1]),
      ],
    )
    assert.deepEqual(
      troubles.map(({ status, error }) => [status, error]).sort(),
      [
        ['failed', 'HTTP 503'],
        ['failed', 'no such page'],
        ['parked', 'took its worker down'],
        ['stuck', troubles.find(({ status }) => status === 'stuck')!.error],
      ].sort(),
    )
    for (const { sample, status, error, firstAt, lastAt } of troubles) {
      const target = (await store.target(sample.id))!
      assert.deepEqual([target.key, target.status], [sample.key, status])
      assert.equal(target.lastError ?? '', error)
      assert.ok(before - 1_000 <= firstAt && firstAt <= lastAt && lastAt <= before + 60_000)
    }
  })

  test('troubles are those of a source when one is named', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await troubledRun(store)
    const other = await troubledRun(store, 'other')

    assert.equal((await store.troubles({})).length, 8)
    const troubles = await store.troubles({ source: 'other' })
    assert.deepEqual(new Set(troubles.map(({ run }) => run)), new Set([other]))
    assert.deepEqual(await store.troubles({ source: 'nobody' }), [])
  })

  test('troubled targets are listed one by one, by source, status and error, none twice and none missing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await troubledRun(store)
    await troubledRun(store, 'other')
    const count = async (filter: Omit<TroubleFilter, 'limit'>): Promise<number> => {
      const seen = new Set<string>()
      for (let after: string | null | undefined; after !== null;) {
        const { items, next } = await store.troubledTargets({ ...filter, after, limit: 2 })
        for (const { id } of items) assert.ok(!seen.has(id))
        for (const { id } of items) seen.add(id)
        after = next
      }
      return seen.size
    }

    assert.equal(await count({}), 10)
    assert.equal(await count({ source: 'other' }), 5)
    assert.equal(await count({ statuses: ['failed'] }), 6)
    assert.equal(await count({ statuses: ['stuck', 'parked'], source: SOURCE }), 2)
    assert.equal(await count({ errors: ['HTTP 503'] }), 4)
    assert.equal(await count({ errors: ['HTTP 503', 'no such page'], source: SOURCE }), 3)
    assert.equal(await count({ errors: ['HTTP 503'], statuses: ['parked'] }), 0)
    assert.equal(await count({ errors: [] }), 0)
    assert.equal(await count({ errors: ["x' OR 1=1 --", 'a\0b'] }), 0)
  })

  test('what a worker measures is kept as it last sent it, also when it has ended', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [one, two] = [await hire(store), await hire(store)]
    await hire(store)
    const beat = (worker: string, stats?: unknown) =>
      store.beat({ worker, claimIds: [], loopLagMs: 0, ...(stats !== undefined && { stats }) })
    assert.deepEqual(await store.workerStats(), [])

    await beat(one, { checkpoints: [1, 2] })
    await beat(one, { checkpoints: [3, 4] })
    await beat(one)
    await beat(two, { checkpoints: [5] })
    await store.retire(two)

    const all = (await store.workerStats()) as { checkpoints: number[] }[]
    assert.deepEqual(all.map(({ checkpoints }) => checkpoints).sort(), [[3, 4], [5]])
    assert.equal((await store.worker(one))?.beats, 3)
  })

  test('each turn is a turn of its own', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [one, two] = [await hire(store), await hire(store)]
    for (const turn of ['sweep', 'monitor', 'alerts', 'sample'] as const) {
      assert.equal(await store.takeTurn(one, 60_000, turn), true)
      assert.equal(await store.takeTurn(two, 60_000, turn), false)
    }
  })
}

/** A run with two kinds of failed targets, a held one, a parked one, a done one and one in line. */
async function troubledRun(store: Store, source = SOURCE): Promise<string> {
  const worker = await hire(store, { source })
  const run = await startCrawl(store, 7, { source })
  const [a, b, c, d, e] = await claim(store, worker, 5, { source })
  const failed = (error: string) => ({ error, retryInMs: null })
  allOk(await store.fail([a!, b!].map((target) => ({ ...target, ...failed('HTTP 503') }))))
  allOk(await store.fail([{ ...c!, ...failed('no such page') }]))
  allOk(await store.park([{ ...d!, reason: 'took its worker down' }]))
  allOk(await store.finish([e!]))
  const dead = await hire(store, { source, id: newId() })
  await claimOne(store, dead, { source, empty: true })
  await bury(store, dead, 'hold')
  return run
}
