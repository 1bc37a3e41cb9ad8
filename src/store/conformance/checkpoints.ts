import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PageBehind } from '../../model/errors.ts'
import {
  allOk,
  assertLeaseLost,
  bury,
  claim,
  claimOne,
  hire,
  ok,
  page,
  save,
  someItems,
  SOURCE,
  startCrawl,
  targetOf,
} from '../../testing/cast.ts'
import { assertBooksBalance } from '../../testing/assert-books.ts'
import type { Engine } from '../../testing/test-database.ts'
import type { Store } from '../store.ts'

export function checkpointTests(engine: Engine): void {
  const insertLedger = `INSERT INTO ledger (page) VALUES (${engine.placeholder(1)})`

  test('P3 atomic page: its items, its cursor and its counts are in together', async () => {
    await using db = await engine.fresh()
    const [store, reader] = [await db.open(), await db.open()]
    const run = await startCrawl(store, 1)
    const claimed = await claimOne(store, await hire(store))

    const [outcome] = await store.checkpoint([
      page(claimed, {
        items: [{ url: 'https://Shop.example/acme?utm_source=x', data: { name: 'Acme' } }],
        next: 'https://shop.example/?page=2',
        pageTarget: 12,
        lastItemId: 'acme',
        cursor: { seen: [1, 'zwei', null] },
        skipped: 3,
      }),
    ])

    assert.equal(ok(outcome!), 1)
    assert.partialDeepStrictEqual(await targetOf(reader, claimed.target), {
      status: 'in_progress',
      seq: 1,
      page: 1,
      next: 'https://shop.example/?page=2',
      pageTarget: 12,
      lastItemId: 'acme',
      cursor: { seen: [1, 'zwei', null] },
    })
    const [item] = await reader.items(SOURCE, null, 10)
    assert.equal(item?.key, 'https://shop.example/acme')
    assert.deepEqual(item?.data, { name: 'Acme' })
    assert.equal(item?.run, run)
    assert.partialDeepStrictEqual((await reader.run(run))?.counts, {
      pages: 1,
      itemsNew: 1,
      itemsUpdated: 0,
      itemsUnchanged: 0,
      skipped: 3,
    })
  })

  test('what a page does not say stays as it was', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await startCrawl(store, 1)
    const first = await save(store, await claimOne(store, await hire(store)), {
      pageTarget: 12,
      lastItemId: 'acme',
      cursor: { at: 1 },
    })

    await save(store, first, { next: null })

    assert.partialDeepStrictEqual(await targetOf(store, first.target), {
      page: 2,
      next: null,
      pageTarget: 12,
      lastItemId: 'acme',
      cursor: { at: 1 },
    })
  })

  test('P3 atomic page: who reads meanwhile never sees items without their page, nor a page without its items', async () => {
    await using db = await engine.fresh()
    const [store, reader] = [await db.open(), await db.open()]
    await startCrawl(store, 1)
    let claimed = await claimOne(store, await hire(store))
    let writing = true
    const pageNow = async () => (await targetOf(reader, claimed.target)).page
    const watch = async (): Promise<number> => {
      let looks = 0
      for (; writing; looks++) {
        const before = await pageNow()
        const items = (await reader.items(SOURCE, null, 1_000)).length
        const after = await pageNow()
        assert.ok(items >= before * 5, `page ${before} is in, but only ${items} items`)
        assert.ok(items <= after * 5, `${items} items, but only page ${after} is in`)
        assert.equal(items % 5, 0)
        await new Promise(setImmediate)
      }
      return looks
    }

    const looking = watch()
    for (let n = 0; n < 60; n++) {
      claimed = await save(store, claimed, { items: someItems(n * 5, 5) })
    }
    writing = false

    assert.ok((await looking) > 5)
  })

  test('P3 atomic page: a fenced page leaves no item behind', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [late, fresh] = [await hire(store), await hire(store)]
    await startCrawl(store, 1)
    const lost = await claimOne(store, late)
    await bury(store, late)
    await claimOne(store, fresh, { empty: true })

    assertLeaseLost((await store.checkpoint([page(lost, { items: someItems(0, 3) })]))[0])

    assert.deepEqual(await store.items(SOURCE, null, 10), [])
  })

  test("P3 the user's own rows and the page are in together", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await db.raw('CREATE TABLE ledger (page INTEGER)')
    await startCrawl(store, 1)
    const claimed = await claimOne(store, await hire(store))

    const outcomes = await store.checkpoint(
      [page(claimed, { items: someItems(0, 1) })],
      async (tx) => {
        await tx.query(insertLedger, [1])
        const rows = await tx.query('SELECT page FROM ledger')
        assert.equal(Number(rows[0]?.page), 1)
      },
    )

    assert.equal(ok(outcomes[0]!), 1)
    assert.equal((await db.raw('SELECT * FROM ledger')).length, 1)
    assert.equal((await store.items(SOURCE, null, 10)).length, 1)
  })

  test("P3 when the user's function throws neither its rows nor the page are in, and the page can be sent again", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await db.raw('CREATE TABLE ledger (page INTEGER)')
    const run = await startCrawl(store, 1)
    const claimed = await claimOne(store, await hire(store))
    const first = page(claimed, { items: someItems(0, 2) })

    await assert.rejects(
      store.checkpoint([first], async (tx) => {
        await tx.query(insertLedger, [1])
        throw new Error('of the user')
      }),
      { message: 'of the user' },
    )
    await assert.rejects(
      store.checkpoint([first], (tx) => tx.query('INSERT INTO nowhere VALUES (1)')),
      /nowhere/,
    )

    assert.equal((await db.raw('SELECT * FROM ledger')).length, 0)
    assert.deepEqual(await store.items(SOURCE, null, 10), [])
    assert.equal((await targetOf(store, claimed.target)).seq, 0)
    await assertBooksBalance(store, run)
    allOk(await store.checkpoint([first], (tx) => tx.query(insertLedger, [1])))
    assert.equal((await db.raw('SELECT * FROM ledger')).length, 1)
  })

  test("P5 the user's function does not run for a page that is in already, is behind, or was refused", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await startCrawl(store, 1)
    const claimed = await claimOne(store, await hire(store))
    const first = page(claimed)
    let runs = 0
    const count = () => void runs++
    allOk(await store.checkpoint([first], count))

    allOk(await store.checkpoint([first], count))
    const [behind] = await store.checkpoint([page(claimed, { next: 'other' })], count)
    const [refused] = await store.checkpoint([page({ ...claimed, epoch: 9 })], count)

    assert.ok(!behind!.ok && behind!.error instanceof PageBehind)
    assertLeaseLost(refused)
    assert.equal(runs, 1)
  })

  test('P12 no unknown left: the same page sent again is answered as saved, and counted once', async () => {
    await using db = await engine.fresh()
    const [store, other] = [await db.open(), await db.open()]
    const run = await startCrawl(store, 1)
    const claimed = await claimOne(store, await hire(store))
    const first = page(claimed, { items: someItems(0, 3), skipped: 2 })

    const answers = [
      await store.checkpoint([first]),
      await store.checkpoint([first]),
      await other.checkpoint([first]),
    ]

    assert.deepEqual(answers, Array(3).fill([{ ok: true, value: 1 }]))
    assert.partialDeepStrictEqual((await store.run(run))?.counts, {
      pages: 1,
      itemsNew: 3,
      itemsUnchanged: 0,
      skipped: 2,
      refused: 0,
    })
    await assertBooksBalance(store, run)
  })

  test('P12 no unknown left: the same page sent twice at the same moment is in once', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 4 }, () => db.open()))
    const store = stores[0]!
    const run = await startCrawl(store, 1)
    let claimed = await claimOne(store, await hire(store))
    await db.raw('CREATE TABLE ledger (page INTEGER)')

    for (let n = 1; n <= 10; n++) {
      const next = page(claimed, { items: someItems(n * 3, 3), done: n === 10 })
      const answers = await Promise.all(
        stores.map((store) => store.checkpoint([next], (tx) => tx.query(insertLedger, [n]))),
      )
      assert.deepEqual(answers, Array(4).fill([{ ok: true, value: n }]))
      claimed = { ...claimed, seq: n, page: n }
    }

    assert.equal((await db.raw('SELECT * FROM ledger')).length, 10)
    assert.partialDeepStrictEqual((await store.run(run))?.counts, { pages: 10, itemsNew: 30 })
    await assertBooksBalance(store, run)
  })

  test('P12 no unknown left: another page under the same number is not taken for the one that is in', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await startCrawl(store, 1)
    const claimed = await claimOne(store, await hire(store))
    await save(store, claimed, { items: [{ key: 'a', data: 1 }] })

    const [outcome] = await store.checkpoint([page(claimed, { items: [{ key: 'a', data: 2 }] })])

    assert.ok(!outcome!.ok && outcome!.error instanceof PageBehind)
    assert.equal((await store.items(SOURCE, null, 10))[0]?.data, 1)
  })

  test('P12 no unknown left: the last page sent again is answered as saved after its target is done', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 1)
    const last = page(await claimOne(store, await hire(store)), { done: true, next: null })

    allOk(await store.checkpoint([last]))
    allOk(await store.checkpoint([last]))
    await store.settle(run)
    allOk(await store.checkpoint([last]))

    assert.equal((await store.run(run))?.counts.targets.done, 1)
    await assertBooksBalance(store, run)
  })

  test('a checkpoint with done finishes its target in the same step', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 1)
    const claimed = await claimOne(store, await hire(store))

    await save(store, claimed, { done: true, next: null, items: someItems(0, 1) })

    const target = await targetOf(store, claimed.target)
    assert.equal(target.status, 'done')
    assert.ok(target.finishedAt)
    assert.deepEqual(await store.settle(run), [{ run, status: 'succeeded' }])
  })

  test('P6 never back: a page behind the cursor is refused, and the cursor stays', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 1)
    let claimed = await claimOne(store, await hire(store))
    for (let n = 0; n < 3; n++) claimed = await save(store, claimed)
    const at = claimed.seq

    for (const number of [1, 2, 3]) {
      const late = page(claimed, { expectedSeq: at, page: number, items: someItems(0, 1) })
      const [outcome] = await store.checkpoint([late])
      assert.ok(!outcome!.ok && outcome!.error instanceof PageBehind, `page ${number}`)
      assert.match(outcome!.error.message, /stands at page 3/)
    }

    assert.equal((await targetOf(store, claimed.target)).page, 3)
    assert.deepEqual(await store.items(SOURCE, null, 10), [])
    assert.equal((await store.run(run))?.counts.pages, 3)
    await save(store, claimed)
  })

  test('P6 never back: a page that expects another number than the next changes nothing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await startCrawl(store, 1)
    const claimed = await save(store, await claimOne(store, await hire(store)))

    for (const expectedSeq of [0, 2, 7]) {
      const [outcome] = await store.checkpoint([page(claimed, { expectedSeq, page: 9 })])
      assert.equal(outcome?.ok, false, `expecting ${expectedSeq}`)
    }

    assert.equal((await targetOf(store, claimed.target)).page, 1)
  })

  test('a batch saves many pages in one step and answers for each', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 20)
    const claims = await claim(store, await hire(store), 20)

    const outcomes = await store.checkpoint(
      claims.map((claim, n) => page(claim, { items: someItems(n * 2, 2), done: n % 4 === 0 })),
    )

    assert.deepEqual(
      outcomes.map((outcome) => ok(outcome)),
      Array(20).fill(1),
    )
    assert.partialDeepStrictEqual((await store.run(run))?.counts, { pages: 20, itemsNew: 40 })
    assert.equal((await store.run(run))?.counts.targets.done, 5)
    await assertBooksBalance(store, run)
  })

  test('a batch sent again, half of it in already, ends as if sent once', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 6)
    const claims = await claim(store, await hire(store), 6)
    const pages = claims.map((claim, n) => page(claim, { items: someItems(n, 1) }))

    allOk(await store.checkpoint(pages.slice(0, 3)))
    allOk(await store.checkpoint(pages))
    allOk(await store.checkpoint(pages))

    assert.partialDeepStrictEqual((await store.run(run))?.counts, {
      pages: 6,
      itemsNew: 6,
      itemsUnchanged: 0,
    })
  })

  test('two pages of one target in a batch follow each other', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 1)
    const claimed = await claimOne(store, await hire(store))
    const [first, second] = [page(claimed), page({ ...claimed, seq: 1, page: 1 }, { done: true })]

    const outcomes = await store.checkpoint([first, second])

    assert.deepEqual(
      outcomes.map((outcome) => ok(outcome)),
      [1, 2],
    )
    assert.equal((await targetOf(store, claimed.target)).page, 2)
    await assertBooksBalance(store, run)
  })

  test('progress moves the last activity of its target and its run', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 1)
    const claimed = await claimOne(store, await hire(store))
    await db.later(60_000)
    const before = await activity(store, run, claimed.target)

    await save(store, claimed)

    const after = await activity(store, run, claimed.target)
    assert.ok(after.target - before.target > 50_000)
    assert.ok(after.run - before.run > 50_000)
  })
}

async function activity(
  store: Store,
  run: string,
  target: string,
): Promise<{ run: number; target: number }> {
  return {
    run: (await store.run(run))!.lastActivityAt,
    target: (await targetOf(store, target)).lastActivityAt,
  }
}
