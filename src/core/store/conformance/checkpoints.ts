import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PageBehindError } from '../../model/errors.ts'
import {
  itemsOf,
  assertAllOk,
  assertLeaseLost,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  unwrap,
  nextCheckpoint,
  savePage,
  makeItems,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import { startStoreProcess } from '../../../testing/store-process.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { Store } from '../store.ts'

export function checkpointTests(engine: Engine): void {
  test('P3 atomic page: its items, its cursor and its counts are in together', async () => {
    await using db = await engine.fresh()
    const [store, reader] = [await db.open(), await db.open()]
    const run = await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))

    const [outcome] = await store.checkpoint([
      nextCheckpoint(claimed, {
        items: [{ url: 'https://Shop.example/acme?utm_source=x', data: { name: 'Acme' } }],
        next: 'https://shop.example/?page=2',
        pageTarget: 12,
        lastItemId: 'acme',
        cursor: { seen: [1, 'zwei', null] },
        skipped: 3,
      }),
    ])

    assert.equal(unwrap(outcome!).seq, 1)
    assert.partialDeepStrictEqual(await getTarget(reader, claimed.target), {
      status: 'in_progress',
      seq: 1,
      page: 1,
      next: 'https://shop.example/?page=2',
      pageTarget: 12,
      lastItemId: 'acme',
      cursor: { seen: [1, 'zwei', null] },
    })
    const [item] = await itemsOf(reader)
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
    await enqueueCrawl(store, 1)
    const first = await savePage(store, await claimOne(store, await registerWorker(store)), {
      pageTarget: 12,
      lastItemId: 'acme',
      cursor: { at: 1 },
    })

    await savePage(store, first, { next: null })

    assert.partialDeepStrictEqual(await getTarget(store, first.target), {
      page: 2,
      next: null,
      pageTarget: 12,
      lastItemId: 'acme',
      cursor: { at: 1 },
    })
  })

  test('P3 atomic page: a concurrent read never sees items without their page, nor a page without its items', async () => {
    await using db = await engine.fresh()
    const reader = await db.open()
    await using writer = await startStoreProcess(db.url)
    await enqueueCrawl(reader, 1)
    let claimed = await claimOne(reader, await registerWorker(reader))
    const pageNow = async () => (await getTarget(reader, claimed.target)).page
    let looks = 0
    const look = async (): Promise<void> => {
      const before = await pageNow()
      const items = (await itemsOf(reader)).length
      const after = await pageNow()
      assert.ok(items >= before * 5, `page ${before} is in, but only ${items} items`)
      assert.ok(items <= after * 5, `${items} items, but only page ${after} is in`)
      assert.equal(items % 5, 0)
      looks++
    }

    for (let n = 0; n < 60; n++) {
      const next = nextCheckpoint(claimed, { items: makeItems(n * 5, 5) })
      let saved = false
      const saving = writer.call(0, 'checkpoint', [next]).then((outcomes) => {
        assertAllOk(outcomes)
        saved = true
      })
      for (; !saved; await new Promise(setImmediate)) await look()
      await saving
      claimed = { ...claimed, seq: n + 1, page: n + 1 }
    }

    assert.ok(looks >= 60)
  })

  test('P3 atomic page: a fenced page leaves no item behind', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [late, fresh] = [await registerWorker(store), await registerWorker(store)]
    await enqueueCrawl(store, 1)
    const lost = await claimOne(store, late)
    await recoverWorker(store, late)
    await claimOne(store, fresh, { isIdle: true })

    assertLeaseLost((await store.checkpoint([nextCheckpoint(lost, { items: makeItems(0, 3) })]))[0])

    assert.deepEqual(await itemsOf(store), [])
  })

  test('a checkpoint with done finishes its target in the same step', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))

    await savePage(store, claimed, { done: true, next: null, items: makeItems(0, 1) })

    const target = await getTarget(store, claimed.target)
    assert.equal(target.status, 'done')
    assert.ok(target.finishedAt)
    assert.deepEqual(await store.settle(run), [{ run, status: 'succeeded' }])
  })

  test('P6 never back: a page behind the cursor is refused, and the cursor stays', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)
    let claimed = await claimOne(store, await registerWorker(store))
    for (let n = 0; n < 3; n++) claimed = await savePage(store, claimed)
    const at = claimed.seq

    for (const number of [1, 2, 3]) {
      const late = nextCheckpoint(claimed, {
        expectedSeq: at,
        page: number,
        items: makeItems(0, 1),
      })
      const [outcome] = await store.checkpoint([late])
      assert.ok(!outcome!.ok && outcome!.error instanceof PageBehindError, `page ${number}`)
      assert.match(outcome!.error.message, /stands at page 3/)
    }

    assert.equal((await getTarget(store, claimed.target)).page, 3)
    assert.deepEqual(await itemsOf(store), [])
    assert.equal((await store.run(run))?.counts.pages, 3)
    await savePage(store, claimed)
  })

  test('P6 never back: a page that expects another number than the next changes nothing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const claimed = await savePage(store, await claimOne(store, await registerWorker(store)))

    for (const expectedSeq of [0, 2, 7]) {
      const [outcome] = await store.checkpoint([nextCheckpoint(claimed, { expectedSeq, page: 9 })])
      assert.equal(outcome?.ok, false, `expecting ${expectedSeq}`)
    }

    assert.equal((await getTarget(store, claimed.target)).page, 1)
  })

  test('a batch saves many pages in one step and returns a result for each', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 20)
    const claims = await claim(store, await registerWorker(store), 20)

    const outcomes = await store.checkpoint(
      claims.map((claim, n) =>
        nextCheckpoint(claim, { items: makeItems(n * 2, 2), done: n % 4 === 0 }),
      ),
    )

    assert.deepEqual(
      outcomes.map((outcome) => unwrap(outcome).seq),
      Array(20).fill(1),
    )
    assert.partialDeepStrictEqual((await store.run(run))?.counts, { pages: 20, itemsNew: 40 })
    assert.equal((await store.run(run))?.counts.targets.done, 5)
    await assertCountersConsistent(store, run)
  })

  test('two pages of one target in a batch follow each other', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    const [first, second] = [
      nextCheckpoint(claimed),
      nextCheckpoint({ ...claimed, seq: 1, page: 1 }, { done: true }),
    ]

    const outcomes = await store.checkpoint([first, second])

    assert.deepEqual(
      outcomes.map((outcome) => unwrap(outcome).seq),
      [1, 2],
    )
    assert.equal((await getTarget(store, claimed.target)).page, 2)
    await assertCountersConsistent(store, run)
  })

  test('progress moves the last activity of its target and its run', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    await db.advanceClock(60_000)
    const before = await activity(store, run, claimed.target)

    await savePage(store, claimed)

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
    target: (await getTarget(store, target)).lastActivityAt,
  }
}
