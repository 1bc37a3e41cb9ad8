import assert from 'node:assert/strict'
import { test } from 'node:test'
import { registerWorker } from '../../../testing/fixtures.ts'
import { startStoreProcess } from '../../../testing/store-process.ts'
import type { Engine } from '../../../testing/test-database.ts'
import { thisProcess } from '../../host/identity.ts'
import { newId } from '../../model/id.ts'

const TIMEOUT_MS = 30_000

export function leadershipTests(engine: Engine): void {
  test('P2 of many concurrent requests one acquires the leadership, and keeps it while it renews', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 8 }, () => db.open()))
    const workers = await Promise.all(stores.map((store) => registerWorker(store)))

    const turns = await Promise.all(
      stores.map((store, n) => store.acquireLeadership(workers[n]!, 60_000)),
    )

    assert.equal(turns.filter(Boolean).length, 1)
    const mine = turns.indexOf(true)
    for (let n = 0; n < 3; n++) {
      assert.equal(await stores[mine]!.acquireLeadership(workers[mine]!, 60_000), true)
      assert.equal(
        await stores[(mine + 1) % 8]!.acquireLeadership(workers[(mine + 1) % 8]!, 60_000),
        false,
      )
    }
  })

  test('an expired leadership is acquired by the next request', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [first, second] = [await registerWorker(store), await registerWorker(store)]
    assert.equal(await store.acquireLeadership(first, 10_000), true)
    await db.advanceClock(9_000)
    assert.equal(await store.acquireLeadership(second, 10_000), false)

    await db.advanceClock(1_500)

    assert.equal(await store.acquireLeadership(second, 10_000), true)
    assert.equal(await store.acquireLeadership(first, 10_000), false)
  })

  test('leadership is taken over by a worker with a shorter interval, and not by one with a longer interval', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [seldom, often] = [await registerWorker(store), await registerWorker(store)]
    assert.equal(await store.acquireLeadership(seldom, 60_000, 'monitor'), true)

    assert.equal(await store.acquireLeadership(often, 2_000, 'monitor'), true)

    assert.equal(await store.acquireLeadership(seldom, 60_000, 'monitor'), false)
    assert.equal(
      await store.acquireLeadership(seldom, 60_000),
      true,
      'the turn to sweep is another one',
    )
    assert.equal(await store.acquireLeadership(often, 60_000), false)
  })

  test('a request in time renews the leadership', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [first, second] = [await registerWorker(store), await registerWorker(store)]
    for (let n = 0; n < 3; n++) {
      assert.equal(await store.acquireLeadership(first, 10_000), true)
      await db.advanceClock(6_000)
      assert.equal(await store.acquireLeadership(second, 10_000), false)
    }
  })

  test('the turn of a worker that retired is taken at once', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [first, second] = [await registerWorker(store), await registerWorker(store)]
    await store.acquireLeadership(first, 60_000)

    await store.retireWorker(first)

    assert.equal(await store.acquireLeadership(second, 60_000), true)
  })

  test('the turn of a worker that was killed is taken within a second', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const second = await registerWorker(store)
    await using other = await startStoreProcess(db.url)
    const first = newId()
    const presence = await other.acquirePresence(first)
    await other.call(0, 'registerWorker', {
      id: first,
      source: 'shop',
      process: thisProcess(),
      presence,
      version: '0.0.0-test',
      heartbeatMs: 1_000,
      leaseMs: 15_000,
    })
    assert.equal(await other.call(0, 'acquireLeadership', first, 60_000), true)
    assert.equal(await store.acquireLeadership(second, 60_000), false)

    await other.kill('SIGKILL')

    // Long before its time is over.
    let taken = false
    for (const until = performance.now() + TIMEOUT_MS; !taken && performance.now() < until;) {
      taken = await store.acquireLeadership(second, 60_000)
    }
    assert.equal(taken, true)
  })
}
