import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '../../model/id.ts'
import { registerWorker, SOURCE, enqueueCrawl } from '../../../testing/fixtures.ts'
import { startStoreProcess, type StoreProcess } from '../../../testing/store-process.ts'
import type { Engine } from '../../../testing/test-database.ts'
import { thisProcess } from '../../host/identity.ts'
import type { Store, WorkerObservation } from '../store.ts'

export function presenceTests(engine: Engine): void {
  test('P9 a worker in another process is seen as present: its lock is held, its process alive', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await using other = await startStoreProcess(db.url)
    const worker = await registerElsewhere(other)

    const { evidence } = await observe(store, worker)

    assert.partialDeepStrictEqual(evidence, {
      presence: 'held',
      presenceKind: engine.presence,
      process: 'alive',
      pid: other.pid,
      host: thisProcess().host,
    })
  })

  test('a worker killed with -9 is proven gone', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await using other = await startStoreProcess(db.url)
    const worker = await registerElsewhere(other)
    await enqueueCrawl(store, 3)
    await other.call(0, 'claim', {
      worker,
      source: SOURCE,
      claimIds: [newId()],
      isIdle: true,
      singleSlot: false,
    })

    await other.kill('SIGKILL')

    const lost = async () => {
      const { evidence } = await observe(store, worker)
      return evidence.presence === 'free' && evidence.process === 'gone'
    }
    assert.ok(await eventually(lost), 'its lock is still held')
    assert.equal((await store.claimsOf(worker, null, 10)).length, 1)
  })

  test('P9 a stopped process holds its lock: it is silent, not gone', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await using other = await startStoreProcess(db.url)
    const worker = await registerElsewhere(other)

    await other.kill('SIGSTOP')
    await sleep(300)

    const { evidence } = await observe(store, worker)
    assert.equal(evidence.presence, 'held')
    assert.equal(evidence.process, 'alive')
    await other.kill('SIGCONT')
  })

  test('P9 a process of another boot or another pid namespace is unknown, never gone', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const self = thisProcess()
    // No process has this pid, so a judge that only looked at it would see a dead one.
    const ended = { ...self, pid: 4_194_300, startTicks: 1 }
    const otherBoot = await registerWorker(store, { process: { ...ended, bootId: newId() } })
    const otherSpace = await registerWorker(store, {
      process: { ...ended, pidNamespace: 'pid:[1]' },
    })
    const here = await registerWorker(store, { process: ended })

    assert.equal((await observe(store, otherBoot)).evidence.process, 'unknown')
    assert.equal((await observe(store, otherSpace)).evidence.process, 'unknown')
    assert.equal((await observe(store, here)).evidence.process, 'gone')
  })

  test('a pid that was given to another process does not make a dead worker alive', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const self = thisProcess()
    const worker = await registerWorker(store, {
      process: { ...self, startTicks: (self.startTicks ?? 0) - 1 },
    })

    assert.equal((await observe(store, worker)).evidence.process, 'gone')
  })

  test('a worker without a lock is judged by its beats: its presence is unknown', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)

    const { evidence } = await observe(store, worker)

    assert.equal(evidence.presence, 'unknown')
    assert.equal(evidence.presenceKind, 'none')
  })

  test('a presence that is let go is no longer held', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = newId()
    const held = await store.acquirePresence(worker)
    assert.equal(held.presence.kind, engine.presence)
    const elsewhere = { ...thisProcess(), pid: 4_194_300, startTicks: 1 }
    await registerWorker(store, { id: worker, presence: held.presence, process: elsewhere })

    await held.release()
    await held.release()

    assert.ok(
      await eventually(async () => (await observe(store, worker)).evidence.presence !== 'held'),
    )
  })
}

async function registerElsewhere(other: StoreProcess): Promise<string> {
  const id = newId()
  const presence = await other.acquirePresence(id)
  await other.call(0, 'registerWorker', {
    id,
    source: SOURCE,
    // Filled in by the process itself.
    process: thisProcess(),
    presence,
    version: '0.0.0-test',
    heartbeatMs: 1_000,
    leaseMs: 15_000,
  })
  return id
}

async function observe(store: Store, worker: string): Promise<WorkerObservation> {
  const witnessed = (await store.observations()).find((each) => each.worker.id === worker)
  assert.ok(witnessed)
  return witnessed
}

/** How soon exactly is held by tests that run alone: test/processes/bounded-recovery.test.ts. */
const TIMEOUT_MS = 30_000

async function eventually(look: () => Promise<boolean>): Promise<boolean> {
  for (const until = performance.now() + TIMEOUT_MS; performance.now() < until; await sleep(10)) {
    if (await look()) return true
  }
  return look()
}
