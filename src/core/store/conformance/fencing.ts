import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClaimedTarget, Outcome } from '../../model/claim.ts'
import { LeaseLostError } from '../../model/errors.ts'
import { newId } from '../../model/id.ts'
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
  enqueueCrawl,
  getTarget,
  tryAllWrites,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { Store } from '../store.ts'

export function fencingTests(engine: Engine): void {
  test('P1 one effective owner: a worker that lost its claim cannot save, beat, finish, fail, release, park, touch or report', async () => {
    await using db = await engine.fresh()
    const [store, theirs] = [await db.open(), await db.open()]
    const [late, fresh] = [await registerWorker(store), await registerWorker(store)]
    const run = await enqueueCrawl(store, 1)
    const lost = await savePage(store, await claimOne(store, late), {
      items: [{ key: 'a', data: 1 }],
    })
    await recoverWorker(theirs, late)
    const current = await savePage(theirs, await claimOne(theirs, fresh), {
      items: [{ key: 'b', data: 2 }],
    })
    const before = await getTarget(store, current.target)

    const answers = await tryAllWrites(store, lost)
    const beat = await store.heartbeat({ worker: late, claimIds: [lost.claimId], loopLagMs: 0 })

    for (const [verb, outcome] of Object.entries(answers)) assertLeaseLost(outcome, verb)
    assert.deepEqual(beat.held, [])
    assert.deepEqual(await getTarget(store, current.target), before)
    assert.deepEqual(
      (await itemsOf(store)).map((item) => item.key),
      ['a', 'b'],
    )
    assert.equal((await store.run(run))?.progress, null)
    assert.equal((await store.run(run))?.artifacts, 0)
    assert.equal((await store.run(run))?.counts.refused, Object.keys(answers).length)
    await assertCountersConsistent(store, run)
    await savePage(theirs, current)
  })

  test('P1 one effective owner: a recovered claim is lost before another worker gets the target', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const late = await registerWorker(store)
    const run = await enqueueCrawl(store, 1)
    const lost = await claimOne(store, late)
    await recoverWorker(store, late)
    const before = await getTarget(store, lost.target)

    const answers = await tryAllWrites(store, lost)

    assertLost(answers, ['release', 'fail and retry'])
    assert.deepEqual(await getTarget(store, lost.target), before)
    assert.deepEqual(await itemsOf(store), [])
    await assertCountersConsistent(store, run)
  })

  const alreadySo = { park: ['park'], hold: [], fail: ['fail for good'] }
  for (const action of ['park', 'hold', 'fail'] as const) {
    test(`P1 one effective owner: after the verdict ${action} nothing more is written`, async () => {
      await using db = await engine.fresh()
      const store = await db.open()
      const late = await registerWorker(store)
      const run = await enqueueCrawl(store, 1)
      const lost = await claimOne(store, late)
      await recoverWorker(store, late, action)
      const before = await getTarget(store, lost.target)

      const answers = await tryAllWrites(store, lost)

      assertLost(answers, alreadySo[action])
      assert.deepEqual(await getTarget(store, lost.target), before)
      await assertCountersConsistent(store, run)
    })
  }

  test('P1 two owners stay apart by their claim id when a restored backup took the epoch back', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const current = await claimOne(store, await registerWorker(store))

    const twin = await tryAllWrites(store, { ...current, claimId: newId() })
    const older = await tryAllWrites(store, { ...current, epoch: current.epoch - 1 })
    const newer = await tryAllWrites(store, { ...current, epoch: current.epoch + 1 })

    for (const answers of [twin, older, newer]) {
      for (const [verb, outcome] of Object.entries(answers)) assertLeaseLost(outcome, verb)
    }
    await savePage(store, current)
  })

  test('P1 of two owners that write at the same moment only the current one succeeds', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 5 }, () => db.open()))
    const store = stores[0]!
    const run = await enqueueCrawl(store, 1)
    const claims: ClaimedTarget[] = []
    for (const store of stores) {
      const worker = await registerWorker(store)
      claims.push(await claimOne(store, worker, { isIdle: true }))
      if (claims.length < stores.length) await recoverWorker(store, worker)
    }
    for (let round = 0; round < 10; round++) {
      const seq = (await getTarget(store, claims[0]!.target)).seq
      const outcomes = await Promise.all(
        stores.map((store, n) => {
          const claim = { ...claims[n]!, seq, page: seq }
          return store.checkpoint([
            nextCheckpoint(claim, { items: [{ key: `by ${n}`, data: round }] }),
          ])
        }),
      )
      const won = outcomes.map(([outcome]) => outcome!.ok)
      assert.deepEqual(won, [false, false, false, false, true])
    }
    assert.deepEqual(
      (await itemsOf(store)).map((item) => item.key),
      ['by 4'],
    )
    await assertCountersConsistent(store, run)
  })

  test('a refusal names the current owner, and carries the claim', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [late, fresh] = [await registerWorker(store), await registerWorker(store)]
    await enqueueCrawl(store, 1)
    const lost = await claimOne(store, late)
    await recoverWorker(store, late)
    await claimOne(store, fresh, { isIdle: true })

    const [outcome] = await store.finish([lost])

    assert.ok(outcome && !outcome.ok && outcome.error instanceof LeaseLostError)
    assert.equal(outcome.error.code, 'E_LEASE_LOST')
    assert.equal(outcome.error.data.target, lost.target)
    assert.match(outcome.error.message, new RegExp(fresh.slice(-8)))
  })

  test('a claim on a target that does not exist is lost', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const real = await claimOne(store, await registerWorker(store))

    const answers = await tryAllWrites(store, { ...real, target: newId() })

    for (const [verb, outcome] of Object.entries(answers)) assertLeaseLost(outcome, verb)
  })

  const batches: Record<
    string,
    (store: Store, claims: ClaimedTarget[]) => Promise<{ ok: boolean }[]>
  > = {
    finish: (store, claims) => store.finish(claims),
    release: (store, claims) => store.release(claims),
    park: (store, claims) =>
      store.fail(claims.map((claim) => ({ ...claim, error: 'x', becomes: 'parked' }))),
    fail: (store, claims) =>
      store.fail(claims.map((claim) => ({ ...claim, error: 'x', becomes: 'failed' }))),
    checkpoint: (store, claims) => store.checkpoint(claims.map((claim) => nextCheckpoint(claim))),
  }
  for (const [verb, act] of Object.entries(batches)) {
    test(`one fenced claim in a batch does not spoil the others: ${verb}`, async () => {
      await using db = await engine.fresh()
      const store = await db.open()
      const run = await enqueueCrawl(store, 5)
      const claims = await claim(store, await registerWorker(store), 5)
      const lost = claims.map((claim, n) => (n % 2 ? { ...claim, claimId: newId() } : claim))

      const outcomes = await act(store, lost)

      assert.deepEqual(
        outcomes.map((outcome) => outcome.ok),
        [true, false, true, false, true],
      )
      const counts = (await store.run(run))!.counts
      assert.equal(counts.refused, 2)
      await assertCountersConsistent(store, run)
    })
  }

  test('P12 the end of a claim asked for again is answered as done, and counted once', async () => {
    await using db = await engine.fresh()
    const [store, other] = [await db.open(), await db.open()]
    const run = await enqueueCrawl(store, 5)
    const worker = await registerWorker(store)
    const [a, b, c, d, e] = await claim(store, worker, 5)

    for (const each of [store, other]) {
      assertAllOk(await each.finish([a!]))
      assertAllOk(await each.release([b!]))
      assertAllOk(await each.fail([{ ...c!, error: 'gave up', becomes: 'failed' }]))
      assertAllOk(await each.fail([{ ...d!, error: 'again', becomes: { retryInMs: 60_000 } }]))
      assertAllOk(await each.fail([{ ...e!, error: 'odd', becomes: 'parked' }]))
    }

    assert.equal((await getTarget(store, d!.target)).errors, 1)
    const counts = (await store.run(run))!.counts
    assert.partialDeepStrictEqual(counts, {
      targets: { planned: 2, in_progress: 0, done: 1, failed: 1, parked: 1 },
      errors: 3,
      refused: 0,
    })
    await assertCountersConsistent(store, run)
  })

  test('an empty batch is answered with nothing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()

    assert.deepEqual(await store.checkpoint([]), [])
    assert.deepEqual(await store.finish([]), [])
    assert.deepEqual(await store.fail([]), [])
    assert.deepEqual(await store.release([]), [])
    assert.deepEqual(await store.applyVerdicts([], 'nobody'), [])
  })

  test('nothing is written to a target that is done', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    unwrap((await store.checkpoint([nextCheckpoint(claimed, { done: true })]))[0]!)
    const behind = { ...claimed, seq: 1, page: 1 }

    assertLeaseLost((await store.checkpoint([nextCheckpoint(behind)]))[0], 'a page')
    assertLeaseLost((await store.release([claimed]))[0], 'a release')
    assertLeaseLost(await store.reportProgress(claimed, { done: 1, total: 1 }), 'progress')

    assert.equal((await getTarget(store, claimed.target)).status, 'done')
  })
}

/** What asks for nothing but what is already so may be answered as done: it changes nothing either way. */
function assertLost(answers: Record<string, Outcome<unknown>>, alreadySo: readonly string[]): void {
  for (const [verb, outcome] of Object.entries(answers)) {
    if (!outcome.ok || !alreadySo.includes(verb)) assertLeaseLost(outcome, verb)
  }
}
