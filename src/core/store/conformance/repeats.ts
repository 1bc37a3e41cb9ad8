import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PageBehindError } from '../../model/errors.ts'
import {
  itemsOf,
  assertAllOk,
  claim,
  claimOne,
  registerWorker,
  nextCheckpoint,
  savePage,
  makeItems,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import type { Engine } from '../../../testing/test-database.ts'

export function repeatTests(engine: Engine): void {
  const insertLedger = `INSERT INTO ledger (page) VALUES (${engine.placeholder(1)})`

  test('P12 no unknown left: the same page sent again is answered as saved, and counted once', async () => {
    await using db = await engine.fresh()
    const [store, other] = [await db.open(), await db.open()]
    const run = await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    const first = nextCheckpoint(claimed, { items: makeItems(0, 3), skipped: 2 })

    const answers = [
      await store.checkpoint([first]),
      await store.checkpoint([first]),
      await other.checkpoint([first]),
    ]

    assert.deepEqual(answers, Array(3).fill([{ ok: true, value: { seq: 1 } }]))
    assert.partialDeepStrictEqual((await store.run(run))?.counts, {
      pages: 1,
      itemsNew: 3,
      itemsUnchanged: 0,
      skipped: 2,
      refused: 0,
    })
    await assertCountersConsistent(store, run)
  })

  test('P12 no unknown left: the same page sent twice at the same moment is in once', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 4 }, () => db.open()))
    const store = stores[0]!
    const run = await enqueueCrawl(store, 1)
    let claimed = await claimOne(store, await registerWorker(store))
    await db.raw('CREATE TABLE ledger (page INTEGER)')

    for (let n = 1; n <= 10; n++) {
      const next = nextCheckpoint(claimed, { items: makeItems(n * 3, 3), done: n === 10 })
      const answers = await Promise.all(
        stores.map((store) => store.checkpoint([next], (tx) => tx.query(insertLedger, [n]))),
      )
      assert.deepEqual(answers, Array(4).fill([{ ok: true, value: { seq: n } }]))
      claimed = { ...claimed, seq: n, page: n }
    }

    assert.equal((await db.raw('SELECT * FROM ledger')).length, 10)
    assert.partialDeepStrictEqual((await store.run(run))?.counts, { pages: 10, itemsNew: 30 })
    await assertCountersConsistent(store, run)
  })

  test('P12 no unknown left: another page under the same number is not taken for the one that is in', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    await savePage(store, claimed, { items: [{ key: 'a', data: 1 }] })

    const [outcome] = await store.checkpoint([
      nextCheckpoint(claimed, { items: [{ key: 'a', data: 2 }] }),
    ])

    assert.ok(!outcome!.ok && outcome!.error instanceof PageBehindError)
    assert.equal((await itemsOf(store))[0]?.data, 1)
  })

  test('P12 no unknown left: the last page sent again is answered as saved after its target is done', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)
    const last = nextCheckpoint(await claimOne(store, await registerWorker(store)), {
      done: true,
      next: null,
    })

    assertAllOk(await store.checkpoint([last]))
    assertAllOk(await store.checkpoint([last]))
    await store.settle(run)
    assertAllOk(await store.checkpoint([last]))

    assert.equal((await store.run(run))?.counts.targets.done, 1)
    await assertCountersConsistent(store, run)
  })

  test('a batch sent again, half of it in already, ends as if sent once', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 6)
    const claims = await claim(store, await registerWorker(store), 6)
    const pages = claims.map((claim, n) => nextCheckpoint(claim, { items: makeItems(n, 1) }))

    assertAllOk(await store.checkpoint(pages.slice(0, 3)))
    assertAllOk(await store.checkpoint(pages))
    assertAllOk(await store.checkpoint(pages))

    assert.partialDeepStrictEqual((await store.run(run))?.counts, {
      pages: 6,
      itemsNew: 6,
      itemsUnchanged: 0,
    })
  })
}
