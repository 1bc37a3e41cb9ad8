import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeartbeatOverdueError } from '../../model/errors.ts'
import { newId } from '../../model/id.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import {
  assertAllOk,
  listTargets,
  begin,
  beginOne,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  savePage,
  SOURCE,
  enqueueSingle,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import { startStoreProcesses } from '../../../testing/store-process.ts'
import type { Engine } from '../../../testing/test-database.ts'

export function claimingTests(engine: Engine): void {
  test('P1 one owner: of twenty stores and two processes that claim at once no two get the same target', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 20 }, () => db.open()))
    await using others = await startStoreProcesses(db.url, 2)
    const worker = await registerWorker(stores[0]!)
    const run = await enqueueCrawl(stores[0]!, 100)
    const ids = () => ({
      worker,
      source: SOURCE,
      claimIds: [newId(), newId(), newId()],
      isIdle: false,
      singleSlot: false,
    })

    const claimed = (
      await Promise.all([
        ...stores.flatMap((store) => [store.claim(ids()), store.claim(ids())]),
        ...others.all.map((other) => other.call(0, 'claim', ids())),
      ])
    ).flat()

    const targets = claimed.map((claim) => claim.target)
    assert.equal(new Set(targets).size, targets.length, 'a target was claimed twice')
    assert.equal(targets.length, 100)
    assert.ok(claimed.every((claim) => claim.epoch === 1))
    assert.equal((await stores[0]!.run(run))?.counts.targets.in_progress, 100)
    await assertCountersConsistent(stores[0]!, run)
  })

  test('a claim takes at most one target per id, oldest first, and returns all that its holder needs', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, [{ key: 'a', group: 'CA', url: 'https://a.example/' }])
    await sleepIntoNextId()
    await store.plan(run, [{ key: 'b' }])
    await sleepIntoNextId()
    await store.plan(run, [{ key: 'c' }])
    const claimIds = [newId(), newId()]

    const claimed = await claim(store, worker, 2, { claimIds })

    assert.deepEqual(claimed.map((claim) => claim.key).sort(), ['a', 'b'])
    assert.deepEqual(claimed.map((claim) => claim.claimId).sort(), claimIds.toSorted())
    const a = claimed.find((claim) => claim.key === 'a')!
    assert.partialDeepStrictEqual(a, {
      epoch: 1,
      worker,
      run,
      source: SOURCE,
      group: 'CA',
      url: 'https://a.example/',
      errors: 0,
      crashedBefore: false,
      seq: 0,
      page: 0,
      pageTarget: null,
      next: null,
      lastItemId: null,
      cursor: null,
    })
    const target = await getTarget(store, a.target)
    assert.equal(target.status, 'in_progress')
    assert.equal(target.worker, worker)
    assert.ok(target.claimedAt)
    await assertCountersConsistent(store, run)
  })

  test('the first claim makes a run running', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 2)
    const worker = await registerWorker(store)

    await claimOne(store, worker)

    const running = await store.run(run)
    assert.equal(running?.status, 'running')
    assert.equal(running?.resumes, 0)
    assert.equal(running?.owner, null, 'a crawl has many workers and no owner')
    await claimOne(store, worker)
    assert.equal((await store.run(run))?.startedAt, running?.startedAt)
  })

  test('P12 a repeated claim with the same ids returns the same claims and takes nothing more', async () => {
    await using db = await engine.fresh()
    const [one, other] = [await db.open(), await db.open()]
    const worker = await registerWorker(one)
    const run = await enqueueCrawl(one, 10)
    const claimIds = [newId(), newId(), newId()]

    const first = await claim(one, worker, 3, { claimIds })
    const again = await claim(other, worker, 3, { claimIds })

    const byId = (a: { claimId: string }, b: { claimId: string }) =>
      a.claimId < b.claimId ? -1 : 1
    assert.equal(first.length, 3)
    assert.deepEqual(again.toSorted(byId), first.toSorted(byId))
    assert.equal((await one.run(run))?.counts.targets.in_progress, 3)
  })

  test('P12 a claim asked twice at the same moment takes its targets once', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 4 }, () => db.open()))
    const store = stores[0]!
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 100)

    for (let round = 1; round <= 15; round++) {
      const claimIds = [newId(), newId(), newId()]
      const answers = await Promise.all(stores.map((each) => claim(each, worker, 3, { claimIds })))

      const targets = answers.map((answer) => answer.map((claim) => claim.target).sort())
      for (const each of targets) assert.deepEqual(each, targets[0], `round ${round}`)
      const held = (await store.run(run))?.counts.targets.in_progress
      assert.equal(held, round * 3, `round ${round}: a claim belongs to no known worker`)
    }
  })

  test('there is nothing to claim for an unknown source, a run that ended or a worker that did', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const retired = await registerWorker(store)
    await store.retireWorker(retired)
    const run = await enqueueCrawl(store, 3)

    assert.deepEqual(await claim(store, worker, 1, { source: 'another' }), [])
    assert.deepEqual(await claim(store, retired), [])
    assert.deepEqual(await claim(store, worker, 0), [])
    assertAllOk(await store.finish(await claim(store, worker, 3)))
    assert.deepEqual(await claim(store, worker), [])
    await store.settle(run)
    assert.deepEqual(await claim(store, worker), [])
  })

  test('a run with one target is begun, not claimed', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueSingle(store)

    assert.deepEqual(await claim(store, await registerWorker(store), 5, { isIdle: true }), [])
  })

  test('a retry comes back when its time has come, before fresh targets, and not before', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 5)
    const failed = await claimOne(store, worker)
    assertAllOk(
      await store.fail([{ ...failed, error: 'HTTP 503', becomes: { retryInMs: 60_000 } }]),
    )

    const early = await claimOne(store, worker)
    await db.advanceClock(59_000)
    const stillEarly = await claimOne(store, await registerWorker(store))
    await db.advanceClock(1_500)
    const due = await claimOne(store, await registerWorker(store))

    assert.notEqual(early.target, failed.target)
    assert.notEqual(stillEarly.target, failed.target)
    assert.equal(due.target, failed.target)
    assert.equal(due.errors, 1)
    assert.equal(due.epoch, 2)
    assert.equal(due.crashedBefore, false)
  })

  test('P9 a worker whose heartbeats do not get through claims nothing, until one is accepted', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store, { heartbeatMs: 10_000, leaseMs: 60_000 })
    await enqueueCrawl(store, 5)
    await enqueueSingle(store, 'single')
    const hold = { source: 'command', worker, killTimeoutMs: 1_000, processTag: 'c' }
    await db.advanceClock(15_000)
    const early = await claimOne(store, worker)
    await db.advanceClock(16_000)

    assert.deepEqual(await claim(store, worker, 2), [])
    await assert.rejects(begin(store, worker, { source: 'single' }), HeartbeatOverdueError)
    await assert.rejects(begin(store, worker, { source: 'new' }), HeartbeatOverdueError)
    await assert.rejects(store.lockSource(hold), HeartbeatOverdueError)
    assert.equal((await store.liveRun('single'))?.status, 'queued')
    assert.equal(await store.liveRun('new'), null)

    await store.heartbeat({ worker, claimIds: [early.claimId], loopLagMs: 0 })
    assert.equal((await claim(store, worker, 2)).length, 2)
    assert.equal((await beginOne(store, worker, { source: 'single' })).source, 'single')
    assert.equal((await store.lockSource(hold)).worker, worker)
  })

  test('P12 an answer that got lost is given again, however long no heartbeat got through', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const claimIds = [newId()]
    const claimed = await claim(store, worker, 1, { claimIds })
    const request = {
      source: 'single',
      worker,
      policy: DEFAULT_POLICY,
      run: newId(),
      target: newId(),
      claimId: newId(),
    }
    const begun = await store.begin(request)
    await db.advanceClock(60_000)

    assert.deepEqual(await claim(store, worker, 1, { claimIds }), claimed)
    assert.deepEqual(await store.begin(request), begun)
  })

  test('a retry that is alone in line waits for its time', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const failed = await claimOne(store, worker)
    assertAllOk(await store.fail([{ ...failed, error: 'HTTP 429', becomes: { retryInMs: 5_000 } }]))

    assert.deepEqual(await claim(store, worker, 1, { isIdle: true }), [])
    await db.advanceClock(5_500)

    assert.equal((await claimOne(store, worker)).target, failed.target)
  })

  test('a target that was released or recovered after a page comes before new ones', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, dead] = [await registerWorker(store), await registerWorker(store)]
    await enqueueCrawl(store, 8)
    const released = await claimOne(store, worker)
    const resumed = await savePage(store, await claimOne(store, dead))
    assertAllOk(await store.release([released]))
    await recoverWorker(store, dead)

    const claimed = await claim(store, worker, 2)

    assert.deepEqual(
      claimed.map((claim) => claim.target).sort(),
      [released.target, resumed.target].sort(),
    )
    const again = claimed.find((claim) => claim.target === resumed.target)!
    assert.equal(again.page, 1)
    assert.equal(again.seq, 1)
    assert.equal(again.next, resumed.next)
  })

  test('the epoch grows with each claim, also after a clean release', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 1)

    for (let epoch = 1; epoch <= 4; epoch++) {
      const claimed = await claimOne(store, worker)
      assert.equal(claimed.epoch, epoch)
      assertAllOk(await store.release([claimed]))
      const [target] = await listTargets(store, run)
      assert.equal(target?.epoch, epoch)
      assert.equal(target?.worker, null)
    }
  })
}

/** Ids sort by the millisecond they were made in. */
function sleepIntoNextId(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 3))
}
