import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId, type RunId } from '../../model/id.ts'
import type { TargetStatus } from '../../model/target.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import {
  listTargets,
  assertLeaseLost,
  beginOne,
  recoverWorker,
  claim,
  claimOne,
  EVIDENCE,
  registerWorker,
  pendingVerdicts,
  nextCheckpoint,
  savePage,
  SOURCE,
  enqueueCrawl,
  getTarget,
  unwrap,
} from '../../../testing/fixtures.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { Store } from '../store.ts'

const AUDIT_INFO = { actor: 'alice', because: 'it had to be' }

const statusesOf = async (store: Store, run: RunId): Promise<TargetStatus[]> =>
  (await listTargets(store, run)).map(({ status }) => status)

export function undoingTests(engine: Engine): void {
  test('a revert restores a run and the targets that recovery parked, unless they changed since', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, ['a', 'b', 'c'])
    await claim(store, worker, 3)
    await recoverWorker(store, worker, 'park')
    await store.settle()
    const [a, b, c] = await listTargets(store, run)
    const unpark = { action: 'unpark', statuses: ['parked'], reopen: false, dryRun: false } as const
    await store.replan({ run, ...unpark, targets: [b!.id], ...AUDIT_INFO })
    const targets = [a!, b!, { ...c!, seq: 7 }].map(({ id, seq }) => {
      return { id, seq, status: 'parked' as const }
    })
    const plan = {
      run,
      to: 'interrupted',
      targets,
      cancel: null,
      undoes: 'park',
      ...AUDIT_INFO,
    } as const

    assert.equal(await store.revert({ ...plan, from: 'failed' }), false, 'it is no longer failed')
    assert.equal(await store.revert({ ...plan, from: 'interrupted' }), true)

    assert.deepEqual(await statusesOf(store, run), ['planned', 'planned', 'parked'])
    const restored = await getTarget(store, a!.id)
    assert.deepEqual([restored.epoch, restored.crashes], [a!.epoch + 1, 0])
    assert.equal(
      (await getTarget(store, b!.id)).epoch,
      b!.epoch,
      'a target that was not parked stays as it is',
    )
    assert.ok((await store.run(run))!.reopenedAt !== null)
    await assertCountersConsistent(store, run)
  })

  test('a revert of a retry cancels the new run unless it has begun', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const old = await beginOne(store, await registerWorker(store))
    await recoverWorker(store, old.worker, 'retry')
    const next = (await store.liveRun(SOURCE))!
    const { id, seq } = await getTarget(store, old.target)
    const targets = [{ id, seq, status: 'failed' as const }]
    const plan = {
      run: old.run,
      from: 'failed',
      to: 'interrupted',
      targets,
      undoes: 'retry',
      ...AUDIT_INFO,
    } as const

    assert.equal(await store.revert({ ...plan, cancel: null }), false, 'the new run lives')
    assert.equal(await store.revert({ ...plan, cancel: next.id }), true)

    assert.equal((await store.run(next.id))!.status, 'cancelled')
    assert.equal((await store.liveRun(SOURCE))!.id, old.run)
    const taken = await beginOne(store, await registerWorker(store))
    assert.equal(taken.target, old.target)

    await recoverWorker(store, taken.worker, 'retry')
    const third = await beginOne(store, await registerWorker(store))
    assert.equal(await store.revert({ ...plan, cancel: third.run }), false, 'the new run has begun')
    assert.equal((await store.run(third.run))!.status, 'running')
    await assertCountersConsistent(store, old.run)
  })

  test('a revert that no longer fits changes nothing, the retry of its run neither', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const old = await beginOne(store, await registerWorker(store))
    await recoverWorker(store, old.worker, 'retry')
    const next = (await store.liveRun(SOURCE))!
    const plan = {
      run: old.run,
      to: 'interrupted',
      targets: [],
      undoes: 'retry',
      ...AUDIT_INFO,
    } as const

    assert.equal(await store.revert({ ...plan, from: 'cancelled', cancel: next.id }), false)

    assert.equal((await store.run(next.id))!.status, 'queued')
    assert.equal((await store.run(old.run))!.status, 'failed')
    assert.equal((await store.audit({ limit: 9 })).length, 1)
  })

  test('a run that was cancelled after it was judged is not tried again', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const old = await beginOne(store, await registerWorker(store))
    const verdicts = await pendingVerdicts(store, old.worker, 'retry')
    const ended = {
      run: old.run,
      to: 'cancelled',
      action: 'cancel',
      evidence: null,
      expected: {},
    } as const
    await store.moveRun({ ...ended, ...AUDIT_INFO })

    await store.applyVerdicts(verdicts, 'late')

    assert.equal((await store.run(old.run))!.status, 'cancelled')
    assert.equal(await store.liveRun(SOURCE), null)
    await assertCountersConsistent(store, old.run)
  })

  test('what a person opened again in a running crawl is protected until the next claim', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, ['a', 'b', 'c'])
    const [held] = await claim(store, worker, 1)
    await store.parkTargets({ targets: [(await listTargets(store, run))[2]!.id], ...AUDIT_INFO })
    const [, , parked] = await listTargets(store, run)
    const targets = [{ id: parked!.id, seq: 0, status: 'parked' as const }]
    const plan = {
      run,
      from: 'running',
      to: 'running',
      targets,
      cancel: null,
      undoes: 'park',
    } as const
    assert.equal(await store.revert({ ...plan, ...AUDIT_INFO }), true)
    assert.ok((await store.run(run))!.reopenedAt !== null)

    await claimOne(store, worker)

    assert.equal((await store.run(run))!.reopenedAt, null)
    assert.ok(held)
  })

  test('a revert is one transaction: of ten at once one takes it back', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 10 }, () => db.open()))
    const store = stores[0]!
    const run = await enqueueCrawl(store, 1)
    const move = {
      run,
      to: 'abandoned',
      action: 'abandon',
      evidence: null,
      expected: {},
      ...AUDIT_INFO,
    } as const
    await store.moveRun(move)
    const plan = {
      run,
      from: 'abandoned',
      to: 'queued',
      targets: [],
      cancel: null,
      undoes: 'abandon',
      ...AUDIT_INFO,
    } as const

    const reverted = await Promise.all(stores.map((store) => store.revert(plan)))

    assert.equal(reverted.filter(Boolean).length, 1)
    const trail = await store.audit({ run, newestFirst: true, limit: 50 })
    assert.deepEqual(
      trail.map(({ action }) => action),
      ['revert', 'abandon'],
    )
  })

  test('a target that timed out is taken from its living worker, and that is an error and no crash', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, ['a', 'b'])
    const claims = await claim(store, worker, 2, { singleSlot: true })
    const held = await store.claimsOf(worker, null, 10)
    await store.heartbeat({ worker, claimIds: claims.map(({ claimId }) => claimId), loopLagMs: 0 })
    await savePage(store, claims[1]!)
    const because = 'timeout: process 1 is alive, but no progress for 16 min'
    const verdicts = held.map((held) => ({
      held,
      decision: { action: 'resume' as const, because },
      liveness: 'stalled' as const,
      evidence: EVIDENCE,
      newRun: newId(),
    }))

    const applied = await store.applyVerdicts(verdicts, 'the monitor')

    assert.deepEqual(applied, [true, false], 'one has moved on since')
    const target = await getTarget(store, claims[0]!.target)
    assert.deepEqual(
      [target.status, target.errors, target.crashes, target.crashesAlone, target.lastError],
      ['planned', 1, 0, 0, because],
    )
    assertLeaseLost((await store.checkpoint([nextCheckpoint(claims[0]!)]))[0])
    await assertCountersConsistent(store, run)
  })

  test('a target that reported progress since its verdict does not time out', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const claimed = await beginOne(store, await registerWorker(store))
    await db.advanceClock(60_000)
    const verdicts = await pendingVerdicts(store, claimed.worker, 'fail')
    unwrap(await store.reportProgress(claimed, { done: 1, total: 2 }))

    const stalled = verdicts.map((one) => ({ ...one, liveness: 'stalled' as const }))
    assert.deepEqual(await store.applyVerdicts(stalled, 'late'), [false])
  })

  test('targets are found by the end of their id', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 5)
    const [first] = await listTargets(store, run)

    assert.deepEqual(await store.idsEnding(first!.id.slice(-8), 'target'), [first!.id])
    assert.deepEqual(await store.idsEnding(first!.id, 'target'), [first!.id])
    assert.deepEqual(await store.idsEnding('zzzzzzzz', 'target'), [])
  })
}
