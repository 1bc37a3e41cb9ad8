import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AlreadyRunningError, NotFoundError, UsageError } from '../../model/errors.ts'
import { newId, type RunId } from '../../model/id.ts'
import type { TargetStatus } from '../../model/target.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import {
  assertAllOk,
  listTargets,
  assertLeaseLost,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  unwrap,
  nextCheckpoint,
  savePage,
  SOURCE,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { ReplanRequest, Store } from '../store.ts'

const AUDIT_INFO = { actor: 'alice', because: 'it had to be' }

function replan(run: RunId, given: Partial<ReplanRequest> = {}): ReplanRequest {
  const statuses: TargetStatus[] = ['failed']
  return {
    run,
    action: 'reset-failed',
    statuses,
    reopen: false,
    dryRun: false,
    ...AUDIT_INFO,
    ...given,
  }
}

/** A run of these targets, each of which has failed after one page. */
async function failedRun(
  store: Store,
  groups: readonly string[] = [''],
  source = SOURCE,
): Promise<RunId> {
  const worker = await registerWorker(store, { source })
  const targets = groups.map((group, n) => ({ key: `t${n}`, group }))
  const run = await enqueueCrawl(store, targets, { source })
  for (const claimed of await claim(store, worker, groups.length, { source })) {
    const saved = await savePage(store, claimed)
    unwrap((await store.fail([{ ...saved, error: 'gave up', becomes: 'failed' }]))[0]!)
  }
  await store.settle()
  assert.equal((await store.run(run))!.status, 'failed')
  return run
}

const statusesOf = async (store: Store, run: RunId): Promise<TargetStatus[]> =>
  (await listTargets(store, run)).map(({ status }) => status)

/** What people do to targets: putting back in the queue, setting aside, going back. */
export function replanTests(engine: Engine): void {
  test('failed targets that are reset go on from their cursor, and their run lives again', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await failedRun(store, ['', ''])

    assert.deepEqual(await store.replan(replan(run)), { targets: 2, reopened: true })

    const { status, finishedAt, error, reopenedAt } = (await store.run(run))!
    assert.deepEqual([status, finishedAt, error], ['interrupted', null, null])
    assert.ok(reopenedAt !== null)
    await assertCountersConsistent(store, run)
    const again = await claimOne(store, await registerWorker(store))
    assert.deepEqual([again.page, again.errors], [1, 0])
    const target = await getTarget(store, again.target)
    assert.equal(target.attempts, 2, 'attempts are never set back')
    assert.equal((await store.run(run))!.reopenedAt, null, 'it has had an owner again')
    const [entry] = await store.audit({ run, limit: 5 })
    assert.deepEqual(
      [entry!.action, entry!.actor, entry!.before, entry!.after],
      [
        'reset-failed',
        'alice',
        { status: 'failed', targets: { failed: 2 } },
        { status: 'interrupted', targets: { planned: 2 } },
      ],
    )
  })

  test('only the chosen targets are reset: by group, by attempts, by id', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await failedRun(store, ['CA', 'TX', 'TX'])
    const [first] = await listTargets(store, run)

    assert.deepEqual(await store.replan(replan(run, { attemptsMax: 0 })), {
      targets: 0,
      reopened: false,
    })
    const dry = replan(run, { groups: ['TX'], dryRun: true })
    assert.deepEqual(await store.replan(dry), { targets: 2, reopened: true })
    assert.deepEqual(await statusesOf(store, run), ['failed', 'failed', 'failed'])
    assert.equal((await store.run(run))!.status, 'failed')

    assert.deepEqual(await store.replan(replan(run, { groups: ['CA'], attemptsMax: 1 })), {
      targets: 1,
      reopened: true,
    })
    assert.deepEqual(await statusesOf(store, run), ['planned', 'failed', 'failed'])
    assert.deepEqual(await store.replan(replan(run, { targets: [first!.id] })), {
      targets: 0,
      reopened: false,
    })
    assert.equal((await store.audit({ run, limit: 9 })).length, 1)

    const other = await failedRun(store, ['TX'], 'other')
    const both = [...(await listTargets(store, run)), ...(await listTargets(store, other))]
    const named = replan(run, { targets: both.map(({ id }) => id), groups: ['TX'] })
    assert.equal((await store.replan({ ...named, dryRun: true })).targets, 2)
    assert.equal((await store.replan({ ...named, attemptsMax: 0 })).targets, 0)
    assert.equal((await store.replan(named)).targets, 2)
    assert.deepEqual(await statusesOf(store, run), ['planned', 'planned', 'planned'])
    assert.deepEqual(await statusesOf(store, other), ['failed'], 'it is of another run')
    assert.equal((await store.replan({ ...named, targets: [] })).targets, 0)
    await assertCountersConsistent(store, run)
  })

  test('a run is not opened again while another one of its source lives', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await failedRun(store)
    await enqueueCrawl(store, 1)

    await assert.rejects(store.replan(replan(run)), AlreadyRunningError)
    await assert.rejects(store.replan(replan(run, { dryRun: true })), AlreadyRunningError)
    const [target] = await listTargets(store, run)
    const rewind = { target: target!.id, to: 0, next: null, cursor: null, ...AUDIT_INFO }
    await assert.rejects(store.rewind(rewind), AlreadyRunningError)

    assert.deepEqual(await statusesOf(store, run), ['failed'])
  })

  test('a cancelled run with planned targets left is opened again as it was', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 2)
    const move = {
      run,
      to: 'cancelled',
      action: 'cancel',
      evidence: null,
      expected: {},
      ...AUDIT_INFO,
    } as const
    await store.moveRun(move)

    assert.deepEqual(await store.replan(replan(run)), { targets: 0, reopened: false })
    const resume = replan(run, { action: 'resume', statuses: ['failed', 'stuck'], reopen: true })
    assert.deepEqual(await store.replan(resume), { targets: 0, reopened: true })

    assert.equal((await store.run(run))!.status, 'queued', 'it was never begun')
    assert.deepEqual(await store.replan(resume), { targets: 0, reopened: false })
  })

  test('a run of which nothing is left is opened again only for more targets, which keep it open', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, ['a'])
    await store.finish([await claimOne(store, worker)])
    await store.settle(run)

    const resume = replan(run, { action: 'resume', statuses: [], reopen: true })
    assert.deepEqual(await store.replan(resume), { targets: 0, reopened: false })
    const forMore = { ...resume, reopen: 'for-more' } as const
    assert.deepEqual(await store.replan(forMore), { targets: 0, reopened: true })
    assert.deepEqual(await store.replan(forMore), { targets: 0, reopened: false }, 'it lives')

    assert.equal(await store.plan(run, [{ key: 'a' }, { key: 'b' }]), 1)
    assert.deepEqual(await store.settle(run), [])
    assert.equal((await claimOne(store, worker)).key, 'b')
    await assertCountersConsistent(store, run)
  })

  test('reopening a run replans the targets that were claimed when it ended, and fences off their workers', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const dead = await registerWorker(store)
    const run = await enqueueCrawl(store, ['a', 'b'])
    const held = await claimOne(store, dead)
    const ended = { run, to: 'cancelled', action: 'cancel', evidence: null, expected: {} } as const
    await store.moveRun({ ...ended, ...AUDIT_INFO })
    // It dies in a run that has ended: there is nothing to recover, and its row is closed.
    await store.retireWorker(dead)

    const resume = replan(run, { action: 'resume', statuses: ['failed', 'stuck'], reopen: true })
    assert.deepEqual(await store.replan(resume), { targets: 0, reopened: true })

    assert.deepEqual(await statusesOf(store, run), ['planned', 'planned'])
    assertLeaseLost((await store.checkpoint([nextCheckpoint(held)]))[0])
    await assertCountersConsistent(store, run)
    assert.equal((await claim(store, await registerWorker(store), 2)).length, 2)
  })

  test('a parked target leaves the queue at once, also when claimed, and unpark continues from its cursor', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, ['a', 'b', 'c'])
    const [held, done] = await claim(store, worker, 2)
    const saved = await savePage(store, held!)
    await savePage(store, done!, { done: true })
    const ids = (await listTargets(store, run)).map(({ id }) => id)

    await assert.rejects(
      store.parkTargets({ targets: [...ids, newId()], ...AUDIT_INFO }),
      NotFoundError,
    )
    assert.deepEqual((await statusesOf(store, run)).sort(), ['done', 'in_progress', 'planned'])
    const aside = await store.parkTargets({ targets: ids, ...AUDIT_INFO })

    assert.deepEqual(
      aside.map(({ run: of, from }) => [of, from]),
      [
        [run, 'in_progress'],
        [run, 'planned'],
      ],
    )
    assert.deepEqual((await statusesOf(store, run)).sort(), ['done', 'parked', 'parked'])
    assertLeaseLost((await store.checkpoint([nextCheckpoint(saved)]))[0])
    const target = await getTarget(store, saved.target)
    assert.deepEqual([target.lastError, target.page], ['it had to be', 1])
    assert.ok(target.epoch > saved.epoch)
    assert.deepEqual(
      await store.parkTargets({ targets: ids, ...AUDIT_INFO }),
      [],
      'nothing is left to park',
    )
    assert.equal((await store.audit({ run, limit: 9 })).length, 2)
    await assertCountersConsistent(store, run)

    await store.settle()
    assert.equal((await store.run(run))!.status, 'failed')
    const unpark = replan(run, { action: 'unpark', statuses: ['parked'], targets: [saved.target] })
    assert.deepEqual(await store.replan(unpark), { targets: 1, reopened: true })
    const again = await claimOne(store, worker)
    assert.deepEqual([again.target, again.page], [saved.target, 1])
    assert.ok(again.epoch > saved.epoch)
    await assertCountersConsistent(store, run)
  })

  test('P6 only a rewind moves a cursor back: it raises the epoch, and is in the trail', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, ['a'])
    let claimed = await claimOne(store, worker)
    for (let n = 0; n < 3; n++)
      claimed = await savePage(store, claimed, { cursor: { n }, lastItemId: 'x' })

    const back = { target: claimed.target, next: 'https://shop.example/?page=2', cursor: { at: 1 } }
    await store.rewind({ ...back, to: 1, ...AUDIT_INFO })

    assertLeaseLost((await store.checkpoint([nextCheckpoint(claimed)]))[0])
    const again = await claimOne(store, worker)
    assert.deepEqual(
      [again.page, again.next, again.cursor, again.lastItemId, again.epoch > claimed.epoch],
      [1, back.next, back.cursor, null, true],
    )
    await savePage(store, again)
    const [entry] = await store.audit({ run, limit: 5 })
    assert.deepEqual([entry!.action, entry!.target], ['rewind', claimed.target])
    assert.deepEqual(
      [entry!.before, entry!.after],
      [
        { status: 'in_progress', page: 3 },
        { status: 'planned', page: 1 },
      ],
    )
    await assert.rejects(store.rewind({ ...back, to: 3, ...AUDIT_INFO }), UsageError)
    await assertCountersConsistent(store, run)
  })

  test('a rewind of a target that is done opens its run again', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, ['a'])
    const claimed = await claimOne(store, await registerWorker(store))
    await savePage(store, claimed, { done: true })
    await store.settle()
    assert.equal((await store.run(run))!.status, 'succeeded')

    await store.rewind({ target: claimed.target, to: 0, next: null, cursor: null, ...AUDIT_INFO })

    assert.equal((await store.run(run))!.status, 'interrupted')
    const { status, finishedAt } = await getTarget(store, claimed.target)
    assert.deepEqual([status, finishedAt], ['planned', null])
    await assertCountersConsistent(store, run)
  })

  test('what failed and what was held go on together; where nothing is left to do the run stays ended', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, ['a', 'b', 'c'])
    const [failed, done] = await claim(store, worker, 3)
    assertAllOk(await store.fail([{ ...failed!, error: 'gave up', becomes: 'failed' }]))
    assertAllOk(await store.finish([done!]))
    await recoverWorker(store, worker, 'hold')
    await store.settle()
    const resume = replan(run, { action: 'resume', statuses: ['failed', 'stuck'], reopen: true })

    assert.deepEqual(await store.replan(resume), { targets: 2, reopened: true })

    assert.deepEqual((await statusesOf(store, run)).sort(), ['done', 'planned', 'planned'])
    await assertCountersConsistent(store, run)
    const [entry] = await store.audit({ run, newestFirst: true, limit: 1 })
    assert.deepEqual(entry!.before, { status: 'failed', targets: { failed: 1, stuck: 1 } })
    assertAllOk(await store.finish(await claim(store, worker, 2, { isIdle: true })))
    assertAllOk(await store.finish(await claim(store, worker, 2)))
    await store.settle()
    assert.deepEqual(await store.replan(resume), { targets: 0, reopened: false })
    assert.equal((await store.run(run))!.status, 'succeeded')
  })

  test('P10 of ended runs of a source that are opened again at once, one lives', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
    const runs: RunId[] = []
    for (const store of stores) runs.push(await failedRun(store))

    const answers = await Promise.allSettled(
      stores.map((store, n) => store.replan(replan(runs[n]!))),
    )

    const refused = answers.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    assert.equal(refused.length, 5)
    for (const error of refused) assert.ok(error instanceof AlreadyRunningError, String(error))
    for (const run of runs) await assertCountersConsistent(stores[0]!, run)
  })

  test('parking strikes off the crash of the claim that it ends, and no other', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, ['a', 'b'])
    const lost = await claimOne(store, worker, { singleSlot: true })
    await recoverWorker(store, worker)
    const held = await claimOne(store, worker, { singleSlot: true })

    await store.parkTargets({ targets: [lost.target, held.target], ...AUDIT_INFO })

    const [first, second] = [
      await getTarget(store, lost.target),
      await getTarget(store, held.target),
    ]
    assert.deepEqual([first.crashes, first.crashesAlone], [1, 1])
    assert.deepEqual([second.crashes, second.crashesAlone], [0, 0])
  })
}
