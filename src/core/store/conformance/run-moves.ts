import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AlreadyRunningError } from '../../model/errors.ts'
import { newId, type RunId } from '../../model/id.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import type { Run } from '../../model/run.ts'
import { PROFILE_TRAITS, type RunProfile } from '../../model/traits.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import {
  listTargets,
  assertLeaseLost,
  beginOne,
  claim,
  claimOne,
  registerWorker,
  unwrap,
  nextCheckpoint,
  savePage,
  SOURCE,
  makeItems,
  enqueueCrawl,
  getTarget,
  tryAllWrites,
} from '../../../testing/fixtures.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { RunMove, Store } from '../store.ts'

const AUDIT_INFO = { actor: 'alice', because: 'it had to be' }

function move(run: RunId, given: Partial<RunMove> = {}): RunMove {
  return {
    run,
    to: 'cancelled',
    action: 'cancel',
    evidence: null,
    expected: {},
    ...AUDIT_INFO,
    ...given,
  }
}

async function runOf(store: Store, id: RunId): Promise<Run> {
  const run = await store.run(id)
  assert.ok(run)
  return run
}

export function runMoveTests(engine: Engine): void {
  test('P15 a changed run records its old and new status, the actor and the reason', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 3)
    const evidence = { ageMs: 5, owner: null }

    assert.equal(
      await store.moveRun(move(run, { to: 'abandoned', action: 'abandon', evidence })),
      true,
    )

    const { status, finishedAt, error } = await runOf(store, run)
    assert.deepEqual([status, error], ['abandoned', 'it had to be'])
    assert.ok(finishedAt !== null)
    const [entry] = await store.audit({ run, limit: 5 })
    const { id: _, at, ...rest } = entry!
    assert.ok(Math.abs(at - (await store.now())) < 60_000)
    assert.deepEqual(rest, {
      actor: 'alice',
      action: 'abandon',
      source: SOURCE,
      run,
      target: null,
      key: null,
      because: 'it had to be',
      evidence,
      before: { status: 'queued' },
      after: { status: 'abandoned' },
    })
    assert.equal((await listTargets(store, run)).length, 3, 'nothing is deleted')
    await assertCountersConsistent(store, run)
  })

  test('P2 of ten concurrent changes of a run one succeeds, and writes one audit row', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 10 }, () => db.open()))
    const run = await enqueueCrawl(stores[0]!, 1)
    const { lastActivityAt } = await runOf(stores[0]!, run)
    const only = { status: 'queued', lastActivityAt, isUnclaimed: true } as const

    const moved = await Promise.all(
      stores.map((store) => store.moveRun(move(run, { expected: only }))),
    )

    assert.equal(moved.filter(Boolean).length, 1)
    assert.equal((await stores[0]!.audit({ run, limit: 20 })).length, 1)
  })

  test('P2 a run that has changed since it was judged stays as it is', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 2)
    const seen = await runOf(store, run)
    await db.advanceClock(1_000)
    const judged = await runOf(store, run)
    const claimed = await claimOne(store, worker)
    await savePage(store, claimed)

    assert.equal(await store.moveRun(move(run, { expected: { status: 'queued' } })), false)
    assert.equal(await store.moveRun(move(run, { expected: { isUnclaimed: true } })), false)
    const { lastActivityAt } = judged
    assert.equal(await store.moveRun(move(run, { expected: { lastActivityAt } })), false)
    assert.notEqual(seen.lastActivityAt, judged.lastActivityAt)

    assert.equal((await runOf(store, run)).status, 'running')
    assert.deepEqual(await store.audit({ run, limit: 5 }), [])
    const now = await runOf(store, run)
    assert.equal(
      await store.moveRun(
        move(run, { expected: { status: 'running', lastActivityAt: now.lastActivityAt } }),
      ),
      true,
      'what is still as it was judged is moved',
    )
    assert.equal(await store.moveRun(move(run)), false, 'what has ended is not moved again')
  })

  test('the holder of a target of an ended run learns it with the next heartbeat, and may finish its page', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, worker)
    await store.moveRun(move(run))

    const { held, cancelled } = await store.heartbeat({
      worker,
      claimIds: [claimed.claimId],
      loopLagMs: 0,
    })

    assert.deepEqual([held, cancelled], [[claimed.claimId], [claimed.claimId]])
    await savePage(store, claimed, { items: makeItems(0, 1) })
    unwrap((await store.release([claimed]))[0]!)
    assert.equal((await getTarget(store, claimed.target)).page, 1)
    assert.equal((await runOf(store, run)).status, 'cancelled')
    await assertCountersConsistent(store, run)
  })

  test('a run that is interrupted by a timeout has its targets back in the queue, and their holders are fenced', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 3)
    const [first] = await claim(store, worker, 2, { singleSlot: true })
    const saved = await savePage(store, first!)

    const because = 'timeout: running for 2 h'
    assert.equal(
      await store.moveRun(move(run, { to: 'interrupted', action: 'resume', because })),
      true,
    )

    const { status, finishedAt, error } = await runOf(store, run)
    assert.deepEqual([status, finishedAt, error], ['interrupted', null, null])
    const target = await getTarget(store, saved.target)
    assert.deepEqual([target.status, target.page], ['planned', 1])
    const crashes = (await listTargets(store, run)).map((one) => one.crashes + one.crashesAlone)
    assert.deepEqual(crashes, [0, 0, 0], 'a timeout is not a crash')
    assert.match(target.lastError!, /timeout/)
    for (const [what, outcome] of Object.entries(await tryAllWrites(store, saved)))
      assertLeaseLost(outcome, what)
    await assertCountersConsistent(store, run)

    const before = await store.now()
    await claimOne(store, worker)
    const again = await runOf(store, run)
    assert.deepEqual([again.status, again.resumes], ['running', 1])
    assert.ok(again.resumedAt! >= before - 1_000)
  })

  test('P2 a run that was taken up again since it was judged stays as it is', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 2)
    await claimOne(store, worker)
    const { status, resumes } = await runOf(store, run)
    const overran = move(run, {
      to: 'interrupted',
      action: 'resume',
      expected: { status, resumes },
    })
    assert.equal(await store.moveRun(overran), true)
    await claimOne(store, worker)

    assert.equal(await store.moveRun(overran), false, 'another one has judged the attempt before')
    assert.equal((await runOf(store, run)).status, 'running')
  })

  test('begin abandons the dead run that was judged and starts a new one, in one step', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const old = await beginOne(store, await registerWorker(store))
    unwrap((await store.release([old]))[0]!)
    await store.settle()
    const { status, lastActivityAt } = await runOf(store, old.run)
    const only = { status, lastActivityAt, isUnclaimed: true }
    const clean = move(old.run, { to: 'abandoned', action: 'abandon', expected: only })

    const workers = await Promise.all(Array.from({ length: 8 }, () => registerWorker(store)))
    const begun = await Promise.all(
      workers.map((worker) =>
        store.begin({
          source: SOURCE,
          worker,
          policy: DEFAULT_POLICY,
          run: newId(),
          target: newId(),
          claimId: newId(),
          abandonFirst: clean,
        }),
      ),
    )

    const [winner, ...more] = begun.flatMap((one) => (one.claimed ? [one] : []))
    assert.equal(more.length, 0)
    assert.notEqual(winner!.claimed.run, old.run)
    assert.equal(winner!.resumed, false)
    assert.equal((await runOf(store, old.run)).status, 'abandoned')
    assert.equal((await store.audit({ limit: 20 })).length, 1)
  })

  test('a run that is not dead any more is not abandoned by begin, but taken up', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const old = await beginOne(store, await registerWorker(store))
    const saved = await savePage(store, old)
    unwrap((await store.release([saved]))[0]!)
    const only = { status: 'interrupted', lastActivityAt: 1, isUnclaimed: true } as const
    const clean = move(old.run, { to: 'abandoned', action: 'abandon', expected: only })

    const ids = { run: newId(), target: newId(), claimId: newId() }
    const policy = { ...DEFAULT_POLICY, retries: 9 }
    const begun = await store.begin({
      source: SOURCE,
      worker: await registerWorker(store),
      policy,
      ...ids,
      abandonFirst: clean,
    })

    assert.equal(begun.claimed?.run, old.run)
    assert.equal(begun.claimed?.page, 1)
    assert.equal(
      (await runOf(store, old.run)).policy.retries,
      9,
      'judged by the policy it is worked on with',
    )
  })

  test('begin does not mind that the dead run it was to abandon is gone', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const clean = move(newId(), { to: 'abandoned', action: 'abandon' })
    const ids = { run: newId(), target: newId(), claimId: newId() }
    const worker = await registerWorker(store)

    const begun = await store.begin({
      source: SOURCE,
      worker,
      policy: DEFAULT_POLICY,
      ...ids,
      abandonFirst: clean,
    })

    assert.equal(begun.claimed?.run, ids.run)
    assert.equal(await store.moveRun(clean), false)
  })

  test('a retry is a new queued run that follows the old one from nothing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const old = await beginOne(store, await registerWorker(store))
    await savePage(store, old)
    unwrap((await store.release([{ ...old }]))[0]!)
    const newRun = newId()

    await store.retryRun({ run: old.run, newRun, ...AUDIT_INFO })

    assert.equal((await runOf(store, old.run)).status, 'failed')
    const next = await runOf(store, newRun)
    assert.deepEqual(
      [next.status, next.retryOf, next.kind, next.retries],
      ['queued', old.run, 'single', 0],
    )
    const taken = await beginOne(store, await registerWorker(store))
    assert.deepEqual([taken.run, taken.page], [newRun, 0])
    const [entry] = await store.audit({ run: old.run, limit: 5 })
    assert.deepEqual(entry!.after, { status: 'failed', newRun })
    await assertCountersConsistent(store, newRun)
    await assertCountersConsistent(store, old.run)
  })

  test('a retry of a crawl is planned again, and is refused while the old run is claimed or another run is live', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 2)
    const worker = await registerWorker(store)
    const claimed = await claimOne(store, worker)
    const newRun = newId()

    await assert.rejects(store.retryRun({ run, newRun, ...AUDIT_INFO }), AlreadyRunningError)
    assert.equal(await store.run(newRun), null)

    unwrap((await store.release([claimed]))[0]!)
    await store.retryRun({ run, newRun, ...AUDIT_INFO })
    const next = await runOf(store, newRun)
    assert.deepEqual([next.status, next.plannedAt, next.kind], ['queued', null, 'crawl'])
    await assert.rejects(
      store.retryRun({ run, newRun: newId(), ...AUDIT_INFO }),
      AlreadyRunningError,
    )
  })

  test('a run has the traits of its profile in every list, and its retry has them too', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [run, newRun] = [newId(), newId()]
    const queue = { id: run, source: SOURCE, kind: 'crawl', policy: DEFAULT_POLICY } as const
    await store.enqueue({ ...queue, profile: 'requests' })
    const traits = async (id: RunId): Promise<unknown[]> => {
      const live = (await store.liveRuns()).map((one) => one.run)
      const listed = (await store.runs({ limit: 9 })).items
      const all = [await store.run(id), await store.liveRun(SOURCE), ...live, ...listed]
      return all.filter((one) => one?.id === id).map((one) => one?.traits)
    }
    const { requests, standard } = PROFILE_TRAITS
    assert.deepEqual(await traits(run), [requests, requests, requests, requests])

    await store.retryRun({ run, newRun, ...AUDIT_INFO })

    assert.deepEqual(await traits(newRun), [requests, requests, requests, requests])
    const other = await enqueueCrawl(store, 1, { source: 'other' })
    assert.deepEqual(await traits(other), [standard, standard, standard])
  })

  test('a run with a profile that this version does not know has the traits of a standard run', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = newId()
    const profile = 'of a later version' as RunProfile
    await store.enqueue({ id: run, source: SOURCE, kind: 'crawl', policy: DEFAULT_POLICY, profile })

    assert.deepEqual((await store.run(run))?.traits, PROFILE_TRAITS.standard)
    assert.deepEqual((await store.liveRuns())[0]?.run.traits, PROFILE_TRAITS.standard)
  })

  test('a late page of a run that was cancelled and came back is refused', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const claimed = await beginOne(store, await registerWorker(store))
    await store.moveRun(move(claimed.run))
    const plan = {
      from: 'cancelled',
      to: 'interrupted',
      targets: [],
      cancel: null,
      undoes: 'cancel',
    } as const

    assert.equal(await store.revert({ run: claimed.run, ...plan, ...AUDIT_INFO }), true)

    assertLeaseLost((await store.checkpoint([nextCheckpoint(claimed)]))[0])
    const target = await getTarget(store, claimed.target)
    assert.equal(target.status, 'planned')
    assert.ok(target.epoch > claimed.epoch)
    assert.ok((await runOf(store, claimed.run)).reopenedAt !== null)
    await assertCountersConsistent(store, claimed.run)

    await store.moveRun(move(claimed.run))
    await store.revert({ run: claimed.run, ...plan, ...AUDIT_INFO })
    assert.ok((await getTarget(store, claimed.target)).epoch > target.epoch, 'held or not')
  })
}
