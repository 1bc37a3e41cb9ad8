import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../model/id.ts'
import {
  assertAllOk,
  beginOne,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  savePage,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import type { Engine } from '../../../testing/test-database.ts'

export function workerTests(engine: Engine): void {
  const beat = (worker: string, claimIds: string[] = []) => ({ worker, claimIds, loopLagMs: 7 })

  test('a worker is known by its process, not by a name', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const process = {
      host: 'box',
      pid: 7,
      startTicks: 123_456_789,
      bootId: newId(),
      pidNamespace: 'pid:[4026531836]',
    }

    const id = await registerWorker(store, { process, leaseMs: 3_000, heartbeatMs: 500 })

    assert.partialDeepStrictEqual(await store.worker(id), {
      id,
      source: 'shop',
      process,
      presence: { kind: 'none' },
      version: '0.0.0-test',
      heartbeatMs: 500,
      leaseMs: 3_000,
      heartbeats: 0,
      endedAt: null,
    })
  })

  test('a worker may know nothing of its process', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const process = { host: 'mac', pid: 7, startTicks: null, bootId: null, pidNamespace: null }

    const id = await registerWorker(store, { process })

    assert.deepEqual((await store.worker(id))?.process, process)
    assert.equal((await store.observations())[0]?.evidence.process, 'unknown')
  })

  test('registering again changes nothing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const id = await registerWorker(store)
    await store.heartbeat(beat(id))

    await registerWorker(store, { id })

    assert.equal((await store.worker(id))?.heartbeats, 1)
    assert.equal((await store.observations()).length, 1)
  })

  test('a heartbeat is counted, returns the time and stores the reported lag', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await db.advanceClock(5_000)
    const [before] = await store.observations()

    const answer = await store.heartbeat(beat(worker))

    const [after] = await store.observations()
    assert.ok(before!.evidence.heartbeatAgeMs >= 5_000)
    assert.ok(before!.evidence.heartbeatAgeMs < 10_000)
    assert.ok(after!.evidence.heartbeatAgeMs < 2_000)
    assert.equal(after!.worker.heartbeats, before!.worker.heartbeats + 1)
    assert.equal(after!.evidence.loopLagMs, 7)
    assert.ok(Math.abs(answer.now - Date.now()) < 60_000)
    assert.equal(answer.serverStartedAt === null, engine.name === 'sqlite')
  })

  test('a heartbeat returns which of the named claims are still held, and no others', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 4)
    const [a, b, c, d] = await claim(store, worker, 4)
    assertAllOk(await store.finish([a!]))
    assertAllOk(await store.release([b!]))
    const ids = [a!, b!, c!].map((claim) => claim.claimId)

    const answer = await store.heartbeat(beat(worker, [...ids, newId()]))

    assert.deepEqual(answer.held, [c!.claimId])
    assert.deepEqual(answer.cancelled, [])
    assert.equal(
      (await getTarget(store, d!.target)).status,
      'in_progress',
      'its answer is on its way',
    )
  })

  test('P1 a beat does not answer for claims of others', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [mine, theirs] = [await registerWorker(store), await registerWorker(store)]
    await enqueueCrawl(store, 2)
    const other = await claimOne(store, theirs)

    assert.deepEqual((await store.heartbeat(beat(mine, [other.claimId]))).held, [])
    assert.equal((await getTarget(store, other.target)).worker, theirs)
  })

  test('a heartbeat returns which claims are in a run that has ended', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 2)
    const [a] = await claim(store, worker, 1)
    await db.raw(`UPDATE ${db.table('run')} SET status = 'cancelled' WHERE id = '${run}'`)

    const answer = await store.heartbeat(beat(worker, [a!.claimId]))

    assert.deepEqual(answer.held, [a!.claimId])
    assert.deepEqual(answer.cancelled, [a!.claimId])
  })

  test('a claim the worker does not know of is released after a lease, at no cost', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 2)
    const [known, lost] = await claim(store, worker, 2)
    const named = beat(worker, [known!.claimId])

    await db.advanceClock(14_000)
    await store.heartbeat(named)
    assert.equal(
      (await getTarget(store, lost!.target)).status,
      'in_progress',
      'younger than a lease',
    )
    await db.advanceClock(2_000)
    const answer = await store.heartbeat(named)

    assert.deepEqual(answer.held, [known!.claimId], 'what is named stays, however old')
    const target = await getTarget(store, lost!.target)
    assert.equal(target.status, 'planned')
    assert.equal(target.crashes, 0)
    assert.equal(target.attempts, 0)
    assert.equal((await claimOne(store, await registerWorker(store))).target, lost!.target)
    await assertCountersConsistent(store, run)
  })

  test('the beat of an unknown worker is refused with advice', async () => {
    await using db = await engine.fresh()
    const store = await db.open()

    await assert.rejects(store.heartbeat(beat(newId())), { code: 'E_DB_UNUSABLE' })
  })

  test('a retired worker is not listed, keeps its record, and comes back with a beat', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)

    await store.retireWorker(worker)
    await store.retireWorker(worker)
    assert.deepEqual(await store.observations(), [])
    assert.ok((await store.worker(worker))?.endedAt)
    await store.heartbeat(beat(worker))

    assert.equal((await store.worker(worker))?.endedAt, null)
    assert.equal((await store.observations()).length, 1)
  })

  test('a worker that still holds something is not retired: it would never be recovered', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, worker)

    await store.retireWorker(worker)
    assert.equal((await store.observations()).length, 1)
    assertAllOk(await store.release([claimed]))
    await store.retireWorker(worker)

    assert.deepEqual(await store.observations(), [])
  })

  test('P14 the books stay balanced when workers retire', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 3 }, () => db.open()))
    const workers = await Promise.all(stores.map((store) => registerWorker(store)))
    const run = await enqueueCrawl(stores[0]!, 6)
    await Promise.all(
      stores.map(async (store, n) => {
        for (const claimed of await claim(store, workers[n]!, 2)) {
          await savePage(store, claimed, {
            done: true,
            skipped: 1,
            items: [{ key: `${n}`, data: n }],
          })
        }
      }),
    )
    const before = (await stores[0]!.run(run))!.counts

    await Promise.all(stores.map((store, n) => store.retireWorker(workers[n]!)))

    assert.deepEqual((await stores[0]!.run(run))!.counts, before)
    assert.equal(before.skipped, 6)
    await assertCountersConsistent(stores[0]!, run)
  })

  test('what a worker held is shown with the run only while it is held', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const claimed = await beginOne(store, worker)
    assert.equal((await store.run(claimed.run))?.owner, worker)

    await recoverWorker(store, worker)

    assert.equal((await store.run(claimed.run))?.owner, null)
    assert.equal((await getTarget(store, claimed.target)).worker, null)
  })
}
