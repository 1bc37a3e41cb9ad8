import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NotFoundError, UsageError } from '../../../core/model/errors.ts'
import { newId, type Id } from '../../../core/model/id.ts'
import {
  assertAllOk,
  assertLeaseLost,
  recoverWorker,
  claimOne,
  registerWorker,
  nextCheckpoint,
  savePage,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended } from '../../../testing/test-database.ts'
import { CRAWLEE_STORE, type CrawleeStore, type DatasetEntry, type Storage } from './store.ts'

const ALL = { offset: 0, limit: 1_000_000, desc: false }

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    test('entries stay in the order they came, in large batches too, and can be read in parts from either end', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const { id } = await dataset(store)
      const other = await dataset(store, 'other')
      await store.append(id, unkeyed(5_003))
      await store.append(other.id, unkeyed(2))
      await store.append(id, [])
      await store.append(id, unkeyed(2, 5_003))

      const read = (await store.entries(id, ALL)).items.map(Number)
      assert.deepEqual(
        read,
        read.map((_, n) => n),
      )
      const part = { offset: 5_002, limit: 2, desc: false }
      assert.deepEqual(await store.entries(id, part), { total: 5_005, items: ['5002', '5003'] })
      const last = { offset: 1, limit: 2, desc: true }
      assert.deepEqual((await store.entries(id, last)).items, ['5003', '5002'])
      assert.deepEqual(await store.entries(id, { offset: 9_999, limit: 1, desc: false }), {
        total: 5_005,
        items: [],
      })
    })

    test('an entry whose key is there already replaces it in its place; the last of a batch counts', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const [{ id }, other] = [await dataset(store), await dataset(store, 'other')]
      await store.append(id, [entry('a', 1), entry(null, 2), entry('b', 3), entry('a', 4)])
      await store.append(other.id, [entry('a', 'other')])

      await store.append(id, [entry('c', 5), entry('b', 6), entry(null, 2), entry('c', 7)])

      assert.deepEqual((await store.entries(id, ALL)).items, ['4', '2', '6', '7', '2'])
      assert.deepEqual((await store.entries(other.id, ALL)).items, ['"other"'])
    })

    test('concurrent appends lose and duplicate nothing, also with the same keys in opposite orders', async () => {
      await using db = await engine.fresh()
      const stores = await Promise.all(
        Array.from({ length: 6 }, () => openExtended(db, CRAWLEE_STORE)),
      )
      const { id } = await dataset(stores[0]!)
      const keyed = Array.from({ length: 20 }, (_, n) => entry(`k${n}`, n))

      await Promise.all(
        stores.flatMap((store, s) => [
          store.append(id, unkeyed(20)),
          store.append(id, s % 2 ? keyed : keyed.toReversed()),
        ]),
      )

      assert.equal((await stores[0]!.entries(id, ALL)).total, 6 * 20 + 20)
    })

    test('an entry comes back as it went in, to the letter', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const { id } = await dataset(store)
      const odd = { b: 1, a: ['\0', '\ud800', 'ü😀', null, ''], 'key\0': "'; --" }
      const given = [
        JSON.stringify(odd),
        '{ "z" : 1.00, "a":1e5, "a": 12345678901234567890 }',
        'null',
        '"x"',
        JSON.stringify('x'.repeat(1_000_000)),
      ]

      await store.append(
        id,
        given.map((data) => ({ key: null, data })),
      )

      const { items } = await store.entries(id, ALL)
      assert.deepEqual(items, given)
      assert.deepEqual(JSON.parse(items[0]!), odd)
    })

    test('what is no JSON, or would not come back, is refused together with all that came with it', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const { id } = await dataset(store)
      for (const data of ['', '{', 'undefined', '"\0"', '"\ud800"']) {
        const entries = [entry(null, 1), { key: null, data }]
        await assert.rejects(store.append(id, entries), UsageError)
        assert.throws(() => {
          store.appending(newId(), [{ key: null, data, dataset: id }])
        }, UsageError)
      }
      assert.equal((await store.entries(id, ALL)).total, 0)
    })

    test("P3 entries that go with a page are in with it, and in the books of the target's group", async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const [{ id }, other] = [await dataset(store), await dataset(store, 'other')]
      const run = await enqueueCrawl(store, [{ key: 'a', group: 'CA' }])
      const claimed = await claimOne(store, await registerWorker(store))
      await store.append(id, [entry('old', 0)])
      const entries = [entry('new', 1), entry('old', 2), entry(null, 3)]
      const first = nextCheckpoint(claimed, { done: true })
      const appending = () =>
        store.appending(
          run,
          [...to(id, entries), ...to(other.id, [entry('old', 4)])],
          claimed.group,
        )

      assertAllOk(await store.checkpoint([first], appending()))
      assertAllOk(await store.checkpoint([first], appending()))

      assert.deepEqual((await store.entries(id, ALL)).items, ['2', '1', '3'])
      assert.deepEqual((await store.entries(other.id, ALL)).items, ['4'])
      const counts = { pages: 1, itemsNew: 3, itemsUpdated: 1, itemsUnchanged: 0 }
      assert.partialDeepStrictEqual((await store.run(run))?.counts, counts)
      const [group, ...more] = await store.countsByGroup(run)
      assert.equal(more.length, 0)
      assert.partialDeepStrictEqual(group, { group: 'CA', counts })
      await assertCountersConsistent(store, run)
    })

    test('P2 a worker that lost its claim leaves no entries, and counts none', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const { id } = await dataset(store)
      const run = await enqueueCrawl(store, 1)
      const worker = await registerWorker(store)
      const late = await claimOne(store, worker)
      await recoverWorker(store, worker)

      const appending = store.appending(run, to(id, [entry(null, 1)]))
      const [outcome] = await store.checkpoint([nextCheckpoint(late)], appending)

      assertLeaseLost(outcome)
      assert.equal((await store.entries(id, ALL)).total, 0)
      assert.equal((await store.run(run))?.counts.itemsNew, 0)
    })

    test('P3 when the entries of a page cannot be kept the page is not in either, and can be sent again', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const [{ id }, gone] = [await dataset(store), await dataset(store, 'gone')]
      const run = await enqueueCrawl(store, 1)
      const claimed = await claimOne(store, await registerWorker(store))
      const both = [...to(id, [entry(null, 1)]), ...to(gone.id, [entry(null, 2)])]
      await store.dropStorage(gone.id)

      await assert.rejects(
        store.checkpoint([nextCheckpoint(claimed)], store.appending(run, both)),
        NotFoundError,
      )
      await assert.rejects(
        store.checkpoint([nextCheckpoint(claimed)], async (tx) => {
          await store.appending(run, both.slice(0, 1))(tx)
          throw new Error('of the user')
        }),
        { message: 'of the user' },
      )

      assert.equal((await store.entries(id, ALL)).total, 0)
      assert.equal((await getTarget(store, claimed.target)).seq, 0)
      assert.equal((await store.run(run))?.counts.itemsNew, 0)
      await savePage(store, claimed)
      await assertCountersConsistent(store, run)
    })
  })
}

function dataset(store: CrawleeStore, name = 'default'): Promise<Storage> {
  return store.makeStorage('dataset', name)
}

function entry(key: string | null, data: unknown): DatasetEntry {
  return { key, data: JSON.stringify(data) }
}

function unkeyed(count: number, from = 0): DatasetEntry[] {
  return Array.from({ length: count }, (_, n) => entry(null, from + n))
}

function to(dataset: Id, entries: readonly DatasetEntry[]): (DatasetEntry & { dataset: Id })[] {
  return entries.map((entry) => ({ ...entry, dataset }))
}
