import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hire } from '../../../testing/fixtures.ts'
import { otherProcess } from '../../../testing/other-process.ts'
import type { Engine } from '../../../testing/test-database.ts'
import { thisProcess } from '../../host/identity.ts'
import { newId } from '../../model/id.ts'

const PATIENCE_MS = 30_000

export function turnTests(engine: Engine): void {
  test('P2 of many who ask at once one has its turn to sweep, and keeps it while it asks', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 8 }, () => db.open()))
    const workers = await Promise.all(stores.map((store) => hire(store)))

    const turns = await Promise.all(stores.map((store, n) => store.takeTurn(workers[n]!, 60_000)))

    assert.equal(turns.filter(Boolean).length, 1)
    const mine = turns.indexOf(true)
    for (let n = 0; n < 3; n++) {
      assert.equal(await stores[mine]!.takeTurn(workers[mine]!, 60_000), true)
      assert.equal(await stores[(mine + 1) % 8]!.takeTurn(workers[(mine + 1) % 8]!, 60_000), false)
    }
  })

  test('a turn that ran out is taken by the next who asks', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [first, second] = [await hire(store), await hire(store)]
    assert.equal(await store.takeTurn(first, 10_000), true)
    await db.later(9_000)
    assert.equal(await store.takeTurn(second, 10_000), false)

    await db.later(1_500)

    assert.equal(await store.takeTurn(second, 10_000), true)
    assert.equal(await store.takeTurn(first, 10_000), false)
  })

  test('a turn is taken over by who would come round sooner, and not by who would come later', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [seldom, often] = [await hire(store), await hire(store)]
    assert.equal(await store.takeTurn(seldom, 60_000, 'monitor'), true)

    assert.equal(await store.takeTurn(often, 2_000, 'monitor'), true)

    assert.equal(await store.takeTurn(seldom, 60_000, 'monitor'), false)
    assert.equal(await store.takeTurn(seldom, 60_000), true, 'the turn to sweep is another one')
    assert.equal(await store.takeTurn(often, 60_000), false)
  })

  test('who asks in time prolongs its turn', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [first, second] = [await hire(store), await hire(store)]
    for (let n = 0; n < 3; n++) {
      assert.equal(await store.takeTurn(first, 10_000), true)
      await db.later(6_000)
      assert.equal(await store.takeTurn(second, 10_000), false)
    }
  })

  test('the turn of a worker that retired is taken at once', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [first, second] = [await hire(store), await hire(store)]
    await store.takeTurn(first, 60_000)

    await store.retire(first)

    assert.equal(await store.takeTurn(second, 60_000), true)
  })

  test('the turn of a worker that was killed is taken within a second', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const second = await hire(store)
    await using other = await otherProcess(db.url)
    const first = newId()
    const presence = await other.holdPresence(first)
    await other.call(0, 'register', {
      id: first,
      source: 'shop',
      process: thisProcess(),
      presence,
      version: '0.0.0-test',
      heartbeatMs: 1_000,
      leaseMs: 15_000,
    })
    assert.equal(await other.call(0, 'takeTurn', first, 60_000), true)
    assert.equal(await store.takeTurn(second, 60_000), false)

    await other.kill('SIGKILL')

    // Long before its time is over.
    let taken = false
    for (const until = performance.now() + PATIENCE_MS; !taken && performance.now() < until;) {
      taken = await store.takeTurn(second, 60_000)
    }
    assert.equal(taken, true)
  })
}
