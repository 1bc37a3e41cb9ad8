import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Checkpoint } from '../../model/checkpoint.ts'
import type { ClaimedTarget } from '../../model/claim.ts'
import { PageRejectedError } from '../../model/errors.ts'
import type { SavedItem } from '../../../features/items/store/store.ts'
import type { RunId } from '../../model/id.ts'
import type { NewItem } from '../../model/item.ts'
import {
  itemsOf,
  assertAllOk,
  assertLeaseLost,
  claim,
  claimOne,
  registerWorker,
  unwrap,
  nextCheckpoint,
  savePage,
  makeItems,
  SOURCE,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { Store } from '../store.ts'

export function itemTests(engine: Engine): void {
  test('an item is new, then unchanged, then updated; its version grows with its data only', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)
    let claimed = await claimOne(store, await registerWorker(store))
    const see = async (data: unknown): Promise<SavedItem> => {
      await db.advanceClock(1_000)
      claimed = await savePage(store, claimed, { items: [{ key: 'acme', data }] })
      return (await itemsOf(store))[0]!
    }

    const first = await see({ price: 1 })
    const same = await see({ price: 1 })
    const changed = await see({ price: 2 })

    assert.deepEqual([first.version, same.version, changed.version], [1, 1, 2])
    assert.deepEqual(changed.data, { price: 2 })
    assert.ok(same.lastSeenAt - same.firstSeenAt >= 900)
    assert.ok(same.lastSeenAt - same.changedAt >= 900)
    assert.ok(changed.changedAt - changed.firstSeenAt >= 1_900)
    assert.equal(changed.lastSeenAt, changed.changedAt)
    assert.partialDeepStrictEqual((await store.run(run))?.counts, {
      itemsNew: 1,
      itemsUnchanged: 1,
      itemsUpdated: 1,
    })
  })

  test('an item seen by a later run is updated there, and belongs to that run', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    await savePage(store, await claimOne(store, worker), { items: makeItems(0, 2, 1), done: true })
    await store.settle()
    const second = await enqueueCrawl(store, 1)

    await savePage(store, await claimOne(store, worker), { items: makeItems(1, 2, 2), done: true })

    assert.partialDeepStrictEqual((await store.run(second))?.counts, {
      itemsNew: 1,
      itemsUpdated: 1,
      itemsUnchanged: 0,
    })
    const items = await itemsOf(store)
    assert.deepEqual(
      items.map((item) => [item.data, item.version, item.run === second]),
      [
        [1, 1, false],
        [2, 2, true],
        [2, 1, true],
      ],
    )
  })

  test('the same item on two pages of a batch is one row', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 3)
    const claims = await claim(store, await registerWorker(store), 3)

    assertAllOk(
      await store.checkpoint(
        claims.map((claim) =>
          nextCheckpoint(claim, { items: [{ key: 'acme', data: { same: true } }] }),
        ),
      ),
    )

    const items = await itemsOf(store)
    assert.equal(items.length, 1)
    assert.equal(items[0]?.version, 1)
    assert.partialDeepStrictEqual((await store.run(run))?.counts, {
      itemsNew: 1,
      itemsUpdated: 0,
      itemsUnchanged: 2,
    })
  })

  test('the same item with other data on the next page of a batch is updated', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 2)
    const claims = await claim(store, await registerWorker(store), 2)

    assertAllOk(
      await store.checkpoint(
        claims.map((claim, n) => nextCheckpoint(claim, { items: [{ key: 'acme', data: n }] })),
      ),
    )

    const [item, ...more] = await itemsOf(store)
    assert.equal(more.length, 0)
    assert.equal(item?.data, 1)
    assert.partialDeepStrictEqual((await store.run(run))?.counts, { itemsNew: 1, pages: 2 })
  })

  test('an item that two workers save for targets of two groups is one row, of the group that saved it last', async () => {
    await using db = await engine.fresh()
    const [store, other] = [await db.open(), await db.open()]
    const run = await enqueueCrawl(store, TWO_GROUPS)
    const ca = await claimOne(store, await registerWorker(store))
    const tx = await claimOne(other, await registerWorker(other))
    const see = async (by: Store, claimed: ClaimedTarget, data: number) => {
      const url = `https://shop.example/${claimed.key}/acme`
      const next = await savePage(by, claimed, { items: [{ key: 'acme', url, data }] })
      const [item, ...more] = await itemsOf(store)
      assert.equal(more.length, 0)
      assert.equal(item?.url, url)
      return { next, row: [item?.group, item?.data, item?.version, item?.run === run] }
    }

    const first = await see(store, ca, 1)
    assert.deepEqual(first.row, ['CA', 1, 1, true])
    assert.deepEqual((await see(other, tx, 1)).row, ['TX', 1, 1, true])
    assert.deepEqual((await see(store, first.next, 2)).row, ['CA', 2, 2, true])

    assert.deepEqual(await itemCounts(store, run), { CA: [1, 1, 0], TX: [0, 0, 1] })
    await assertCountersConsistent(store, run)
  })

  for (const data of [
    [1, 1],
    [1, 2],
  ] as const) {
    const which = data[0] === data[1] ? 'same' : 'changed'
    test(`the ${which} item on pages of two groups in one batch is one row, of the last page's group`, async () => {
      await using db = await engine.fresh()
      const store = await db.open()
      const run = await enqueueCrawl(store, TWO_GROUPS)
      const claims = await claim(store, await registerWorker(store), 2)
      const pages = claims.map((claim, n) =>
        nextCheckpoint(claim, { items: [{ key: 'acme', data: data[n] }] }),
      )

      assertAllOk(await store.checkpoint(pages))

      const items = await itemsOf(store)
      assert.deepEqual(
        items.map((item) => [item.data, item.group]),
        [[data[1], 'TX']],
      )
      const { CA, TX } = await itemCounts(store, run)
      const [added, updated, unchanged] = CA!.map((count, n) => count + TX![n]!)
      assert.deepEqual([added, updated! + unchanged!], [1, 1])
      await assertCountersConsistent(store, run)
    })
  }

  test('the same item twice on one page is one row, and the last one counts', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    const first: NewItem[] = [
      { key: 'acme', data: 'first' },
      { key: 'other', data: 0 },
      { key: 'acme', data: 'last' },
    ]

    const next = await savePage(store, claimed, { items: first })
    const [item, ...more] = await itemsOf(store)
    assert.equal(item?.data, 'last')
    assert.equal(more.length, 1)
    assert.equal((await store.run(run))?.counts.itemsNew, 2)

    await savePage(store, next, {
      items: [
        { key: 'acme', data: 'last' },
        { key: 'acme', data: 'newer' },
      ],
    })
    assert.equal((await itemsOf(store))[0]?.data, 'newer')
    assert.equal((await store.run(run))?.counts.itemsUpdated, 1, 'it did change')
  })

  test('P5 pages with the same items in opposite orders, saved at once, all get in and leave one row each', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
    const store = stores[0]!
    const run = await enqueueCrawl(store, 60)
    const claims = await claim(store, await registerWorker(store), 60)
    const items = makeItems(0, 30)

    const outcomes = await Promise.all(
      stores.flatMap((store, s) =>
        Array.from({ length: 5 }, (_, n) => {
          const pair = claims.slice((s * 5 + n) * 2, (s * 5 + n) * 2 + 2)
          const order = (s + n) % 2 ? items : items.toReversed()
          return store.checkpoint(pair.map((claim) => nextCheckpoint(claim, { items: order })))
        }),
      ),
    )

    assertAllOk(outcomes.flat())
    assert.equal((await itemsOf(store)).length, 30)
    assert.partialDeepStrictEqual((await store.run(run))?.counts, {
      pages: 60,
      itemsNew: 30,
      itemsUpdated: 0,
      itemsUnchanged: 59 * 30,
    })
    await assertCountersConsistent(store, run)
  })

  test('one fenced page in a batch leaves its own items out, and no others', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 3)
    const claims = await claim(store, await registerWorker(store), 3)

    const outcomes = await store.checkpoint(
      claims.map((claim, n) =>
        nextCheckpoint(n === 1 ? { ...claim, epoch: 7 } : claim, { items: makeItems(n, 1) }),
      ),
    )

    assert.equal(outcomes[0]?.ok && outcomes[2]?.ok, true)
    assertLeaseLost(outcomes[1])
    assert.deepEqual(
      (await itemsOf(store)).map((item) => item.key),
      ['item-0', 'item-2'],
    )
  })

  test('a page whose data the engine cannot keep fails alone', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 4)
    const claims = await claim(store, await registerWorker(store), 4)
    const pages = claims.map((claim, n) => {
      const fine = nextCheckpoint(claim, { items: [{ key: `item-${n}`, data: 'fine' }] })
      return n === 2 ? withNul(fine) : fine
    })

    const outcomes = await store.checkpoint(pages)

    assert.deepEqual(
      outcomes.map((outcome) => outcome.ok),
      [true, true, !engine.rejectsNul, true],
    )
    if (engine.rejectsNul) {
      assert.ok(!outcomes[2]!.ok && outcomes[2]!.error instanceof PageRejectedError)
      assert.equal((await getTarget(store, claims[2]!.target)).seq, 0)
    }
    await assertCountersConsistent(store, run)
  })

  test('a page that is refused alone is refused by type, and its target can go on', async () => {
    if (!engine.rejectsNul) return
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))

    const [outcome] = await store.checkpoint([
      withNul(nextCheckpoint(claimed, { items: [{ key: 'a', data: 'b' }] })),
    ])

    assert.ok(!outcome!.ok && outcome!.error instanceof PageRejectedError)
    await savePage(store, claimed, { items: [{ key: 'a', data: 'b' }] })
  })

  test('items come by key, page by page, whatever characters their keys have', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const keys = ['B', 'a', 'ä', 'Z', 'z', '10', '9', "o'clock", '%', '_', '日本', '😀', 'a b', '-']
    await savePage(store, await claimOne(store, await registerWorker(store)), {
      items: keys.map((key) => ({ key, data: key })),
    })

    const read = await itemsByPages(store, 4)

    assert.deepEqual(
      read.map((item) => item.key),
      keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
    for (const item of read) assert.equal(item.data, item.key)
  })

  test('data of any JSON comes back as it was', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const values = [
      null,
      0,
      -1.5,
      '',
      'ü\n"\\',
      [],
      {},
      [1, [2, { a: null }]],
      'x'.repeat(1_000_000),
    ]

    await savePage(store, await claimOne(store, await registerWorker(store)), {
      items: values.map((data, n) => ({ key: `k${n}`, data })),
    })

    const read = await itemsOf(store)
    assert.deepEqual(
      read.map((item) => item.data),
      values,
    )
  })

  test('sources keep their items apart', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    for (const source of ['one', 'two']) {
      const worker = await registerWorker(store, { source })
      await enqueueCrawl(store, 1, { source })
      const claimed = await claimOne(store, worker, { source })
      unwrap(
        (
          await store.checkpoint([
            nextCheckpoint(claimed, { items: [{ key: 'same', data: source }] }),
          ])
        )[0]!,
      )
    }

    assert.equal((await itemsOf(store, 'one'))[0]?.data, 'one')
    assert.equal((await itemsOf(store, 'two'))[0]?.data, 'two')
  })
}

/** In the order in which they are claimed. */
const TWO_GROUPS = [
  { key: 'a', group: 'CA' },
  { key: 'b', group: 'TX' },
]

/** New, updated and unchanged items of each group. */
async function itemCounts(store: Store, run: RunId): Promise<Record<string, number[]>> {
  const groups = await store.countsByGroup(run)
  return Object.fromEntries(
    groups.map(({ group, counts: { itemsNew, itemsUpdated, itemsUnchanged } }) => {
      return [group, [itemsNew, itemsUpdated, itemsUnchanged]]
    }),
  )
}

async function itemsByPages(store: Store, limit: number): Promise<SavedItem[]> {
  const all: SavedItem[] = []
  for (;;) {
    const read = await itemsOf(store, SOURCE, all.at(-1)?.key ?? null, limit)
    all.push(...read)
    if (read.length < limit) return all
  }
}

/** Past the function that replaces what no database can store. */
function withNul(page: Checkpoint): Checkpoint {
  return { ...page, items: page.items.map((item) => ({ ...item, data: '"a\\u0000b"' })) }
}
