import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClaimedTarget } from '../../model/claim.ts'
import {
  assertAllOk,
  beginOne,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  unwrap,
  nextCheckpoint,
  savePage,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { Store } from '../store.ts'

export function crashTests(engine: Engine): void {
  test('P11 crashes are counted at claim time: a verdict includes the crash, a read of a live worker does not', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, worker, { singleSlot: true })

    const [held] = await store.claimsOf(worker, null, 10)
    const shown = await getTarget(store, claimed.target)

    assert.equal(held?.target.crashes, 1)
    assert.equal(held?.target.crashesAlone, 1)
    assert.equal(shown.crashes, 0)
    assert.equal(shown.crashesAlone, 0)
    await recoverWorker(store, worker)
    const dead = await getTarget(store, claimed.target)
    assert.equal(dead.crashes, 1)
    assert.equal(dead.crashesAlone, 1)
    assert.equal(dead.errors, 0, 'a crash is not an error')
  })

  const cleanEnds: Record<string, (store: Store, claim: ClaimedTarget) => Promise<unknown>> = {
    released: async (store, claim) => assertAllOk(await store.release([claim])),
    'failed, to be tried again': async (store, claim) =>
      assertAllOk(await store.fail([{ ...claim, error: 'x', becomes: { retryInMs: 0 } }])),
    'failed for good': async (store, claim) =>
      assertAllOk(await store.fail([{ ...claim, error: 'x', becomes: 'failed' }])),
    finished: async (store, claim) => assertAllOk(await store.finish([claim])),
    'finished with its last page': async (store, claim) =>
      assertAllOk(await store.checkpoint([nextCheckpoint(claim, { done: true })])),
    'set aside': async (store, claim) =>
      assertAllOk(await store.fail([{ ...claim, error: 'x', becomes: 'parked' }])),
  }
  for (const [how, end] of Object.entries(cleanEnds)) {
    test(`P11 a claim that was ${how} is no crash`, async () => {
      await using db = await engine.fresh()
      const store = await db.open()
      await enqueueCrawl(store, 1)
      const claimed = await claimOne(store, await registerWorker(store), { singleSlot: true })

      await end(store, claimed)

      const target = await getTarget(store, claimed.target)
      assert.equal(target.crashes, 0)
      assert.equal(target.crashesAlone, 0)
    })
  }

  test('P11 a clean stop costs nothing: attempts, errors and crashes are as before the claim', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const dead = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const first = await claimOne(store, dead, { singleSlot: true })
    await recoverWorker(store, dead)
    const before = await getTarget(store, first.target)

    const again = await claimOne(store, await registerWorker(store), { isIdle: true })
    assertAllOk(await store.release([again]))

    const after = await getTarget(store, first.target)
    for (const field of ['attempts', 'errors', 'crashes', 'crashesAlone', 'page', 'seq'] as const) {
      assert.equal(after[field], before[field], field)
    }
  })

  test('P11 of a command, more files or more reported as done is progress; the same again is not', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const crashesAfter = async (
      act: (claimed: ClaimedTarget) => Promise<unknown>,
    ): Promise<number> => {
      const dead = await registerWorker(store)
      const claimed = await beginOne(store, dead)
      await act(claimed)
      await recoverWorker(store, dead)
      return (await getTarget(store, claimed.target)).crashesAlone
    }

    assert.equal(await crashesAfter((claimed) => store.reportActivity(claimed, 1)), 0)
    assert.equal(await crashesAfter((claimed) => store.reportActivity(claimed, 1)), 1)
    assert.equal(await crashesAfter((claimed) => store.reportActivity(claimed, 2)), 0)
    const report = (done: number) => (claimed: ClaimedTarget) =>
      store.reportProgress(claimed, { done, total: 9 })
    assert.equal(await crashesAfter(report(0)), 1)
    assert.equal(await crashesAfter(report(3)), 0)
    assert.equal(await crashesAfter(report(3)), 1)
  })

  test('P11 progress strikes off crashes and errors; attempts stay', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    for (let n = 0; n < 2; n++) {
      const dead = await registerWorker(store)
      await claimOne(store, dead, { isIdle: true })
      await recoverWorker(store, dead)
    }
    const failed = await claimOne(store, await registerWorker(store), { isIdle: true })
    assertAllOk(await store.fail([{ ...failed, error: 'HTTP 500', becomes: { retryInMs: 0 } }]))
    const before = await getTarget(store, failed.target)
    assert.deepEqual([before.crashes, before.errors, before.attempts], [2, 1, 3])

    const worker = await registerWorker(store)
    await savePage(store, await claimOne(store, worker, { isIdle: true }))

    const [held] = await store.claimsOf(worker, null, 1)
    assert.deepEqual(
      [held?.target.crashes, held?.target.crashesAlone, held?.target.errors, held?.target.attempts],
      [0, 0, 0, 4],
    )
    await recoverWorker(store, worker)
    assert.equal((await getTarget(store, failed.target)).crashes, 0, 'a crash after a page')
  })

  test('P11 only crashes of a target claimed alone count towards parking', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const dead = await registerWorker(store)
    await enqueueCrawl(store, 3)
    const together = await claim(store, dead, 3, { isIdle: true })
    await recoverWorker(store, dead)

    for (const { target: id } of together) {
      const target = await getTarget(store, id)
      assert.equal(target.crashes, 1)
      assert.equal(target.crashesAlone, 0)
    }
  })

  test('P11 after a crash a target is claimed alone, by an empty process only', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [dead, busy, empty] = [
      await registerWorker(store),
      await registerWorker(store),
      await registerWorker(store),
    ]
    await enqueueCrawl(store, 4)
    const [crashed] = await claim(store, dead, 1)
    await recoverWorker(store, dead)

    const besideOthers = await claim(store, busy, 2)
    const alone = await claim(store, empty, 10, { isIdle: true })

    assert.equal(besideOthers.length, 2)
    assert.ok(
      besideOthers.every((claim) => claim.target !== crashed!.target && !claim.crashedBefore),
    )
    assert.deepEqual(
      alone.map((claim) => claim.target),
      [crashed!.target],
    )
    assert.equal(alone[0]!.crashedBefore, true)
    const [held] = await store.claimsOf(empty, null, 10)
    assert.equal(held?.target.crashesAlone, 1, 'the claim counts as made alone')
    assert.equal((await claim(store, busy, 10)).length, 1, 'the rest go on meanwhile')
  })

  test('P11 a poisonous target is distinguished from its neighbours: three crashes alone for it, none for them', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 4)
    const first = await registerWorker(store)
    const [poison, ...innocent] = await claim(store, first, 4, { isIdle: true })
    await recoverWorker(store, first)

    for (let left = 40; left > 0; left--) {
      const worker = await registerWorker(store)
      const claimed = await claim(store, worker, 4, { isIdle: true })
      if (claimed.length === 0) break
      const poisoned = claimed.some((claim) => claim.target === poison!.target)
      if (!poisoned) {
        assertAllOk(await store.finish(claimed))
      } else {
        const [held] = await store.claimsOf(worker, null, 1)
        await recoverWorker(store, worker, held!.target.crashesAlone >= 3 ? 'park' : 'resume')
      }
    }

    const parked = await getTarget(store, poison!.target)
    assert.equal(parked.status, 'parked')
    assert.equal(parked.crashesAlone, 3)
    for (const { target } of innocent) {
      assert.equal((await getTarget(store, target)).status, 'done')
    }
    assert.deepEqual(await store.settle(run), [{ run, status: 'failed' }])
  })

  test('a target that took a worker down waits for its retry too', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [dead, worker] = [await registerWorker(store), await registerWorker(store)]
    await enqueueCrawl(store, 1)
    await claimOne(store, dead)
    await recoverWorker(store, dead)
    const crashed = await claimOne(store, worker, { isIdle: true })
    assertAllOk(
      await store.fail([{ ...crashed, error: 'HTTP 503', becomes: { retryInMs: 10_000 } }]),
    )

    assert.deepEqual(await claim(store, worker, 1, { isIdle: true }), [])
    await db.advanceClock(10_500)

    const again = await claimOne(store, worker, { isIdle: true })
    assert.equal(again.crashedBefore, true)
    assert.equal(again.errors, 1)
  })

  test('consecutive errors are counted and passed to the next holder', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    for (let errors = 0; errors < 3; errors++) {
      const claimed = await claimOne(store, worker)
      assert.equal(claimed.errors, errors)
      assertAllOk(
        await store.fail([{ ...claimed, error: `HTTP 50${errors}`, becomes: { retryInMs: 0 } }]),
      )
    }

    const claimed = await claimOne(store, worker)
    const target = await getTarget(store, claimed.target)
    assert.equal(target.errors, 3)
    assert.equal(target.lastError, 'HTTP 502')
    assert.equal(target.attempts, 4)
  })

  test('P11 a run with one target counts its crashes as alone', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    let target = ''
    for (let crashes = 1; crashes <= 3; crashes++) {
      const dead = await registerWorker(store)
      const claimed = await beginOne(store, dead)
      target = claimed.target
      const [held] = await store.claimsOf(dead, null, 1)
      assert.equal(held?.target.crashesAlone, crashes)
      await recoverWorker(store, dead)
    }
    assert.equal((await getTarget(store, target)).crashesAlone, 3)
    const worker = await registerWorker(store)
    unwrap((await store.finish([await beginOne(store, worker)]))[0]!)
    assert.equal((await getTarget(store, target)).crashes, 0)
  })
}
