import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PageBehindError } from '../../model/errors.ts'
import {
  itemsOf,
  assertAllOk,
  assertLeaseLost,
  claim,
  claimOne,
  registerWorker,
  unwrap,
  nextCheckpoint,
  makeItems,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { Store } from '../store.ts'

export function inTransactionTests(engine: Engine): void {
  const insertLedger = `INSERT INTO ledger (page) VALUES (${engine.placeholder(1)})`

  test("P3 the user's own rows and the page are in together", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await db.raw('CREATE TABLE ledger (page INTEGER)')
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))

    const outcomes = await store.checkpoint(
      [nextCheckpoint(claimed, { items: makeItems(0, 1) })],
      async (tx) => {
        await tx.query(insertLedger, [1])
        const rows = await tx.query('SELECT page FROM ledger')
        assert.equal(Number(rows[0]?.page), 1)
      },
    )

    assert.equal(unwrap(outcomes[0]!).seq, 1)
    assert.equal((await db.raw('SELECT * FROM ledger')).length, 1)
    assert.equal((await itemsOf(store)).length, 1)
  })

  test("P3 when the user's function throws neither its rows nor the page are in, and the page can be sent again", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await db.raw('CREATE TABLE ledger (page INTEGER)')
    const run = await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    const first = nextCheckpoint(claimed, { items: makeItems(0, 2) })

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
    assert.deepEqual(await itemsOf(store), [])
    assert.equal((await getTarget(store, claimed.target)).seq, 0)
    await assertCountersConsistent(store, run)
    assertAllOk(await store.checkpoint([first], (tx) => tx.query(insertLedger, [1])))
    assert.equal((await db.raw('SELECT * FROM ledger')).length, 1)
  })

  test("a store write inside the user's function is refused, instead of a deadlock", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 2)
    const worker = await registerWorker(store)
    const [claimed, other] = await claim(store, worker, 2)
    const later: Promise<unknown>[] = []

    for (const write of [
      () => store.checkpoint([nextCheckpoint(other!)]),
      () => store.checkpoint([nextCheckpoint(other!)], () => {}),
      () => store.finish([claimed!]),
      () => enqueueCrawl(store, 1, { source: 'another' }),
    ]) {
      await assert.rejects(
        store.checkpoint([nextCheckpoint(claimed!)], write),
        /Use only tx\.query/,
      )
    }
    const end = Promise.withResolvers<void>()
    assertAllOk(
      await store.checkpoint([nextCheckpoint(claimed!)], async () => {
        assert.equal((await store.target(other!.target))!.seq, 0)
        later.push(end.promise.then(() => store.checkpoint([nextCheckpoint(other!)])))
      }),
    )
    end.resolve()

    assertAllOk((await Promise.all(later))[0] as Awaited<ReturnType<Store['checkpoint']>>)
  })

  test("P5 the user's function does not run for a page that is in already, is behind, or was refused", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    const first = nextCheckpoint(claimed)
    let runs = 0
    const count = () => void runs++
    assertAllOk(await store.checkpoint([first], count))

    assertAllOk(await store.checkpoint([first], count))
    const [behind] = await store.checkpoint([nextCheckpoint(claimed, { next: 'other' })], count)
    const [refused] = await store.checkpoint([nextCheckpoint({ ...claimed, epoch: 9 })], count)

    assert.ok(!behind!.ok && behind!.error instanceof PageBehindError)
    assertLeaseLost(refused)
    assert.equal(runs, 1)
  })
}
