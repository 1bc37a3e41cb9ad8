import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  claim,
  claimOne,
  registerWorker,
  unwrap,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import type { Heartbeat, Store } from '../store.ts'
import type { HostClock } from './clock.ts'
import { openSqlite } from './open.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND

/** A machine whose clocks stand still until they are moved. */
class FakeMachine implements HostClock {
  boot = 'ba7c3ee9-2bd1-4f0c-9d6e-000000000001'
  up = 600 * SECOND
  wall = Date.parse('2026-03-01T12:00:00Z')

  id = (): string => `${this.boot} time`
  bootMs = (): number => this.up
  wallMs = (): number => this.wall

  advance(ms: number): void {
    this.up += ms
    this.wall += ms
  }

  setWallClock(byMs: number): void {
    this.wall += byMs
  }

  reboot(): void {
    this.boot = `ba7c3ee9-2bd1-4f0c-9d6e-${String(Math.random()).slice(2, 14).padEnd(12, '0')}`
    this.up = 5 * SECOND
  }
}

async function openOn(machine: FakeMachine, processes = 1) {
  const folder = temporaryFolder()
  const open = (): Promise<Store> => openSqlite(join(folder.path, 'u.db'), machine)
  const stores: Store[] = []
  for (let n = 0; n < processes; n++) stores.push(await open())
  return {
    stores,
    open: async () => {
      const store = await open()
      stores.push(store)
      return store
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map((store) => store.close()))
      folder[Symbol.dispose]()
    },
  }
}

const beat = (worker: string): Heartbeat => ({ worker, claimIds: [], loopLagMs: 0 })

for (const jump of [-HOUR, HOUR]) {
  const how = jump < 0 ? 'back' : 'forward'

  test(`a wall clock that is set ${how} by an hour delays no retry and brings none forward`, async () => {
    const machine = new FakeMachine()
    await using db = await openOn(machine, 2)
    const [store, other] = db.stores as [Store, Store]
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, worker)
    unwrap(
      (
        await store.fail([{ ...claimed, error: 'not now', becomes: { retryInMs: 60 * SECOND } }])
      )[0]!,
    )

    machine.setWallClock(jump)
    await other.heartbeat(beat(await registerWorker(other)))
    machine.advance(40 * SECOND)
    assert.deepEqual(await claim(store, worker, 1), [], 'too early')
    machine.advance(30 * SECOND)

    assert.equal((await claim(store, worker, 1)).length, 1)
  })

  test(`a wall clock that is set ${how} by an hour makes nothing older, in any process`, async () => {
    const machine = new FakeMachine()
    await using db = await openOn(machine, 2)
    const [store, other] = db.stores as [Store, Store]
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, worker)

    machine.setWallClock(jump)
    await store.heartbeat({ ...beat(worker), claimIds: [claimed.claimId] })
    machine.advance(10 * SECOND)

    for (const process of [store, other, await db.open()]) {
      const { lastActivityAt } = await getTarget(process, claimed.target)
      const age = (await process.now()) - lastActivityAt
      assert.ok(age >= 9 * SECOND && age <= 12 * SECOND, `${age} ms old`)
      const { run } = (await process.liveRuns())[0]!
      const runAge = (await process.now()) - run.createdAt
      assert.ok(runAge >= 9 * SECOND && runAge <= 12 * SECOND, `run ${runAge} ms old`)
    }
    const { held } = await store.heartbeat({ ...beat(worker), claimIds: [] })
    assert.deepEqual(held, [])
    assert.equal((await getTarget(store, claimed.target)).status, 'in_progress', 'not yet a lease')
  })

  test(`set ${how} while a run is live, it is followed by at most a tenth of the time that passes`, async () => {
    const machine = new FakeMachine()
    await using db = await openOn(machine, 2)
    const workers = await Promise.all(db.stores.map((store) => registerWorker(store)))
    await enqueueCrawl(db.stores[0]!, 1)

    machine.setWallClock(jump)
    let last = await db.stores[0]!.now()
    for (let n = 0; n < 100; n++) {
      machine.advance(SECOND)
      for (const [at, store] of db.stores.entries()) await store.heartbeat(beat(workers[at]!))
      const now = await db.stores[0]!.now()
      assert.ok(Math.abs(now - last - SECOND) <= 101, `${now - last} ms in a second`)
      last = now
    }
    assert.ok(Math.abs(Math.abs(machine.wall - last) - (HOUR - 10 * SECOND)) < 2 * SECOND)
  })

  test(`set ${how} while no run is live, it is taken at once`, async () => {
    const machine = new FakeMachine()
    await using db = await openOn(machine, 2)
    const worker = await registerWorker(db.stores[0]!)

    machine.setWallClock(jump)
    await db.stores[0]!.heartbeat(beat(worker))
    machine.advance(2 * SECOND)

    for (const store of [...db.stores, await db.open()])
      assert.equal(await store.now(), machine.wall)
  })
}

test('a database that was opened in an earlier boot has the wall clock of this one', async () => {
  const machine = new FakeMachine()
  await using db = await openOn(machine)
  await enqueueCrawl(db.stores[0]!, 1)
  machine.setWallClock(-2 * HOUR)
  machine.reboot()

  assert.equal(await (await db.open()).now(), machine.wall)
})

test('small differences from the wall clock are left alone', async () => {
  const machine = new FakeMachine()
  await using db = await openOn(machine)
  const worker = await registerWorker(db.stores[0]!)
  machine.setWallClock(30)

  await db.stores[0]!.heartbeat(beat(worker))

  assert.equal(await db.stores[0]!.now(), machine.wall - 30)
})
