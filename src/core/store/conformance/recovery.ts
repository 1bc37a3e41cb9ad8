import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../model/id.ts'
import type { TargetStatus } from '../../model/target.ts'
import type { Action } from '../../model/verdict.ts'
import {
  assertAllOk,
  listTargets,
  begin,
  beginOne,
  recoverWorker,
  claim,
  claimOne,
  EVIDENCE,
  registerWorker,
  pendingVerdicts,
  savePage,
  SOURCE,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import type { Engine } from '../../../testing/test-database.ts'

export function recoveryTests(engine: Engine): void {
  test('P2 recovery is fenced too: of ten recoverers with the same judgement one acts, and writes one audit row', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 10 }, () => db.open()))
    const store = stores[0]!
    const dead = await registerWorker(store)
    const run = await enqueueCrawl(store, 5)
    const claims = await claim(store, dead, 5)
    const verdicts = await Promise.all(stores.map((store) => pendingVerdicts(store, dead)))

    const applied = await Promise.all(
      stores.map((store, n) => store.applyVerdicts(verdicts[n]!, `recoverer ${n}`)),
    )

    for (const [n, { target }] of verdicts[0]!.map(({ held }) => held).entries()) {
      const who = applied.filter((answers) => answers[n]).length
      assert.equal(who, 1, `target ${target.key} was recovered ${who} times`)
    }
    const audit = await store.audit({ run, limit: 100 })
    assert.equal(audit.length, 5)
    assert.equal(new Set(audit.map((entry) => entry.target)).size, 5)
    for (const { target: id } of claims) {
      const target = await getTarget(store, id)
      assert.equal(target.status, 'planned')
      assert.equal(target.epoch, 1)
    }
    await assertCountersConsistent(store, run)
  })

  test('P2 recovery is fenced too: a judgement of old does not touch the next owner', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [dead, next] = [await registerWorker(store), await registerWorker(store)]
    await enqueueCrawl(store, 1)
    await claimOne(store, dead)
    const verdict = await pendingVerdicts(store, dead)
    await store.applyVerdicts(verdict, 'first')
    const current = await claimOne(store, next, { isIdle: true })

    assert.deepEqual(await store.applyVerdicts(verdict, 'second'), [false])

    assert.equal((await getTarget(store, current.target)).worker, next)
    assert.equal((await store.audit({ limit: 10 })).length, 1)
    await savePage(store, current)
  })

  test('P9 no false recovery: a worker with a heartbeat after its verdict keeps its targets', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, worker)
    const verdict = await pendingVerdicts(store, worker)

    await store.heartbeat({ worker, claimIds: [claimed.claimId], loopLagMs: 0 })

    assert.deepEqual(await store.applyVerdicts(verdict, 'the tests'), [false])
    assert.equal((await getTarget(store, claimed.target)).status, 'in_progress')
    assert.deepEqual(await store.audit({ limit: 10 }), [])
    await savePage(store, claimed)
  })

  test('P9 no false recovery: a page saved since the judgement calls it off', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, worker)
    const verdict = await pendingVerdicts(store, worker)

    const after = await savePage(store, claimed)

    assert.deepEqual(await store.applyVerdicts(verdict, 'the tests'), [false])
    await savePage(store, after)
  })

  test('P2 recovery is fenced too: a claim that was released and made again since is another claim', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, worker)
    const verdict = await pendingVerdicts(store, worker)
    assertAllOk(await store.release([claimed]))
    const again = await claimOne(store, worker)

    assert.deepEqual(await store.applyVerdicts(verdict, 'the tests'), [false])

    assert.equal((await getTarget(store, again.target)).claimId, again.claimId)
  })

  test('P9 a heartbeat and a verdict at the same moment: either the worker keeps its claim, or its heartbeat reports the loss', async () => {
    await using db = await engine.fresh()
    const [theirs, ours] = [await db.open(), await db.open()]
    const run = await enqueueCrawl(theirs, 30)
    for (let round = 0; round < 15; round++) {
      const worker = await registerWorker(theirs)
      const claimed = await claimOne(theirs, worker)
      const verdict = await pendingVerdicts(ours, worker)
      const beat = { worker, claimIds: [claimed.claimId], loopLagMs: 0 }

      const [answer, [taken]] = await Promise.all([
        theirs.heartbeat(beat),
        ours.applyVerdicts(verdict, 'the tests'),
      ])

      const told = await theirs.heartbeat(beat)
      assert.equal(told.held.length, taken ? 0 : 1, `round ${round}`)
      if (taken && answer.held.length === 1) {
        assert.ok((await theirs.worker(worker))!.heartbeats > verdict[0]!.held.workerHeartbeats)
      }
      if (!taken) assertAllOk(await theirs.finish([claimed]))
    }
    await assertCountersConsistent(theirs, run)
  })

  const becomes: Partial<Record<Action, TargetStatus>> = {
    resume: 'planned',
    replan: 'planned',
    park: 'parked',
    hold: 'stuck',
    fail: 'failed',
  }
  for (const [action, status] of Object.entries(becomes)) {
    test(`P7 the verdict ${action} makes a target ${status}, with the reason`, async () => {
      await using db = await engine.fresh()
      const store = await db.open()
      const dead = await registerWorker(store)
      const run = await enqueueCrawl(store, 2)
      const claimed = await savePage(store, await claimOne(store, dead))
      const [verdict] = await pendingVerdicts(store, dead, action as Action)

      assert.deepEqual(await store.applyVerdicts([verdict!], 'night watch'), [true])

      const target = await getTarget(store, claimed.target)
      assert.equal(target.status, status)
      assert.equal(target.page, 1, 'saved pages are kept')
      assert.equal(target.lastError, verdict!.decision.because)
      const [entry] = await store.audit({ run, limit: 10 })
      assert.partialDeepStrictEqual(entry, {
        actor: 'night watch',
        action,
        source: SOURCE,
        run,
        target: claimed.target,
        because: verdict!.decision.because,
        evidence: EVIDENCE,
        before: { status: 'in_progress', epoch: 1, worker: dead, page: 1 },
        after: { status },
      })
      assert.ok(Math.abs(entry!.at - Date.now()) < 60_000)
      await assertCountersConsistent(store, run)
    })
  }

  test('verdicts that leave a target alone change nothing and are not in the audit trail', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, worker)

    for (const action of ['leave', 'alert', 'wait', 'resumable'] as const) {
      assert.deepEqual(await recoverWorker(store, worker, action), [false], action)
    }

    assert.equal((await getTarget(store, claimed.target)).status, 'in_progress')
    assert.deepEqual(await store.audit({ limit: 10 }), [])
  })

  test('one judgement that no longer holds does not spoil the others', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 3)
    const claims = await claim(store, worker, 3)
    const verdicts = await pendingVerdicts(store, worker)
    const saved = verdicts[1]!.held.target.id
    await savePage(
      store,
      claims.find((claim) => claim.target === saved)!,
    )

    assert.deepEqual(await store.applyVerdicts(verdicts, 'the tests'), [true, false, true])

    await assertCountersConsistent(store, run)
  })

  test('P2 the verdict retry fails the run and queues its successor in one step, once for any number of recoverers', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
    const store = stores[0]!
    const [dead, next] = [await registerWorker(store), await registerWorker(store)]
    const old = await beginOne(store, dead, { policy: { runRetries: 4 } })
    const verdicts = await Promise.all(stores.map((store) => pendingVerdicts(store, dead, 'retry')))

    const applied = await Promise.all(
      stores.map((store, n) => store.applyVerdicts(verdicts[n]!, 'the tests')),
    )

    assert.equal(applied.flat().filter(Boolean).length, 1)
    const winner = verdicts[applied.findIndex(([yes]) => yes)]![0]!
    const { items: runs } = await store.runs({ source: SOURCE, limit: 10 })
    assert.equal(runs.length, 2)
    const failed = await store.run(old.run)
    assert.equal(failed?.status, 'failed')
    assert.equal(failed?.error, winner.decision.because)
    assert.ok(failed?.finishedAt)
    const queued = await store.run(winner.newRun)
    assert.partialDeepStrictEqual(queued, {
      status: 'queued',
      kind: 'single',
      retryOf: old.run,
      retries: 1,
      policy: { runRetries: 4 },
    })
    assert.ok(queued?.plannedAt)
    assert.equal((await listTargets(store, winner.newRun)).length, 1)
    assert.equal((await getTarget(store, old.target)).status, 'failed')
    await assertCountersConsistent(store, old.run)
    await assertCountersConsistent(store, winner.newRun)
    assert.deepEqual((await store.audit({ limit: 10 }))[0]?.after, {
      status: 'failed',
      newRun: winner.newRun,
    })
    const begun = await begin(store, next)
    assert.equal(begun.claimed?.run, winner.newRun)
    assert.equal(begun.claimed && begun.resumed, false)
  })

  test('what a worker holds is listed by target, page by page, with its run and its beats', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, other] = [await registerWorker(store), await registerWorker(store)]
    const run = await enqueueCrawl(store, 9)
    await claim(store, other, 2)
    const claims = await claim(store, worker, 5)
    await store.heartbeat({ worker, claimIds: claims.map((claim) => claim.claimId), loopLagMs: 0 })

    const first = await store.claimsOf(worker, null, 3)
    const rest = await store.claimsOf(worker, first.at(-1)!.target.id, 3)

    const ids = [...first, ...rest].map((held) => held.target.id)
    assert.deepEqual(ids, claims.map((claim) => claim.target).sort())
    for (const held of first) {
      assert.equal(held.run.id, run)
      assert.equal(held.workerHeartbeats, 1)
      assert.equal(held.target.worker, worker)
    }
    assert.deepEqual(await store.claimsOf(newId(), null, 3), [])
  })

  test('the audit trail is read in order, by run and from after an entry', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const runs: string[] = []
    for (const source of ['one', 'two']) {
      const dead = await registerWorker(store, { source })
      runs.push(await enqueueCrawl(store, 2, { source }))
      await claim(store, dead, 2, { source })
      await recoverWorker(store, dead)
    }

    const all = await store.audit({ limit: 10 })
    assert.equal(all.length, 4)
    assert.deepEqual(
      all.map((entry) => entry.id),
      all.map((entry) => entry.id).toSorted((a, b) => a - b),
    )
    assert.equal((await store.audit({ run: runs[1]!, limit: 10 })).length, 2)
    const after = await store.audit({ after: all[1]!.id, limit: 1 })
    assert.deepEqual(
      after.map((entry) => entry.id),
      [all[2]!.id],
    )
  })
}
