import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AlreadyRunning, UsageError } from '../../model/errors.ts'
import { newId, type RunId } from '../../model/id.ts'
import type { TargetStatus } from '../../model/target.ts'
import { assertBooksBalance } from '../../testing/assert-books.ts'
import {
  allTargets,
  assertLeaseLost,
  beginOne,
  bury,
  claim,
  claimOne,
  EVIDENCE,
  hire,
  ok,
  page,
  save,
  SOURCE,
  startCrawl,
  targetOf,
} from '../../testing/cast.ts'
import type { Engine } from '../../testing/test-database.ts'
import type { Replan, Store } from '../store.ts'

const DEED = { actor: 'alice', because: 'it had to be' }

function replan(run: RunId, given: Partial<Replan> = {}): Replan {
  const statuses: TargetStatus[] = ['failed']
  return { run, action: 'reset-failed', statuses, reopen: false, dryRun: false, ...DEED, ...given }
}

/** A run of these targets, each of which has failed after one page. */
async function failedRun(store: Store, groups: readonly string[] = ['']): Promise<RunId> {
  const worker = await hire(store)
  const targets = groups.map((group, n) => ({ key: `t${n}`, group }))
  const run = await startCrawl(store, targets)
  for (const claimed of await claim(store, worker, groups.length)) {
    const saved = await save(store, claimed)
    ok((await store.fail([{ ...saved, error: 'gave up', retryInMs: null }]))[0]!)
  }
  await store.settle()
  assert.equal((await store.run(run))!.status, 'failed')
  return run
}

const statusesOf = async (store: Store, run: RunId): Promise<TargetStatus[]> =>
  (await allTargets(store, run)).map(({ status }) => status)

export function undoingTests(engine: Engine): void {
  test('failed targets that are reset go on from their cursor, and their run lives again', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await failedRun(store, ['', ''])

    assert.deepEqual(await store.replan(replan(run)), { targets: 2, reopened: true })

    const { status, finishedAt, error, reopenedAt } = (await store.run(run))!
    assert.deepEqual([status, finishedAt, error], ['interrupted', null, null])
    assert.ok(reopenedAt !== null)
    await assertBooksBalance(store, run)
    const again = await claimOne(store, await hire(store))
    assert.deepEqual([again.page, again.errors], [1, 0])
    const target = await targetOf(store, again.target)
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
    const [first] = await allTargets(store, run)

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
  })

  test('a run is not opened again while another one of its source lives', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await failedRun(store)
    await startCrawl(store, 1)

    await assert.rejects(store.replan(replan(run)), AlreadyRunning)
    await assert.rejects(store.replan(replan(run, { dryRun: true })), AlreadyRunning)
    const [target] = await allTargets(store, run)
    const rewind = { target: target!.id, to: 0, next: null, cursor: null, ...DEED }
    await assert.rejects(store.rewind(rewind), AlreadyRunning)

    assert.deepEqual(await statusesOf(store, run), ['failed'])
  })

  test('a cancelled run with planned targets left is opened again as it was', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 2)
    const move = {
      run,
      to: 'cancelled',
      action: 'cancel',
      evidence: null,
      only: {},
      ...DEED,
    } as const
    await store.moveRun(move)

    assert.deepEqual(await store.replan(replan(run)), { targets: 0, reopened: false })
    const resume = replan(run, { action: 'resume', statuses: ['failed', 'stuck'], reopen: true })
    assert.deepEqual(await store.replan(resume), { targets: 0, reopened: true })

    assert.equal((await store.run(run))!.status, 'queued', 'it was never begun')
    assert.deepEqual(await store.replan(resume), { targets: 0, reopened: false })
  })

  test('what a person parks is out of line at once, whoever has it, and comes back from its cursor', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await hire(store)
    const run = await startCrawl(store, ['a', 'b', 'c'])
    const [held, done] = await claim(store, worker, 2)
    const saved = await save(store, held!)
    await save(store, done!, { done: true })
    const ids = (await allTargets(store, run)).map(({ id }) => id)

    const aside = await store.setAside({ targets: ids, ...DEED })

    assert.deepEqual(
      aside.map(({ run: of, from }) => [of, from]),
      [
        [run, 'in_progress'],
        [run, 'planned'],
      ],
    )
    assert.deepEqual((await statusesOf(store, run)).sort(), ['done', 'parked', 'parked'])
    assertLeaseLost((await store.checkpoint([page(saved)]))[0])
    const target = await targetOf(store, saved.target)
    assert.deepEqual([target.crashes, target.lastError, target.page], [0, 'it had to be', 1])
    assert.deepEqual(await store.setAside({ targets: ids, ...DEED }), [], 'nothing is left to park')
    assert.equal((await store.audit({ run, limit: 9 })).length, 2)
    await assertBooksBalance(store, run)

    await store.settle()
    assert.equal((await store.run(run))!.status, 'failed')
    const unpark = replan(run, { action: 'unpark', statuses: ['parked'], targets: [saved.target] })
    assert.deepEqual(await store.replan(unpark), { targets: 1, reopened: true })
    const again = await claimOne(store, worker)
    assert.deepEqual([again.target, again.page], [saved.target, 1])
    assert.ok(again.epoch > saved.epoch)
    await assertBooksBalance(store, run)
  })

  test('P6 only a rewind moves a cursor back: it raises the epoch, and is in the trail', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await hire(store)
    const run = await startCrawl(store, ['a'])
    let claimed = await claimOne(store, worker)
    for (let n = 0; n < 3; n++)
      claimed = await save(store, claimed, { cursor: { n }, lastItemId: 'x' })

    const back = { target: claimed.target, next: 'https://shop.example/?page=2', cursor: { at: 1 } }
    await store.rewind({ ...back, to: 1, ...DEED })

    assertLeaseLost((await store.checkpoint([page(claimed)]))[0])
    const again = await claimOne(store, worker)
    assert.deepEqual(
      [again.page, again.next, again.cursor, again.lastItemId, again.epoch > claimed.epoch],
      [1, back.next, back.cursor, null, true],
    )
    await save(store, again)
    const [entry] = await store.audit({ run, limit: 5 })
    assert.deepEqual([entry!.action, entry!.target], ['rewind', claimed.target])
    assert.deepEqual(
      [entry!.before, entry!.after],
      [
        { status: 'in_progress', page: 3 },
        { status: 'planned', page: 1 },
      ],
    )
    await assert.rejects(store.rewind({ ...back, to: 3, ...DEED }), UsageError)
    await assertBooksBalance(store, run)
  })

  test('a rewind of a target that is done opens its run again', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, ['a'])
    const claimed = await claimOne(store, await hire(store))
    await save(store, claimed, { done: true })
    await store.settle()
    assert.equal((await store.run(run))!.status, 'succeeded')

    await store.rewind({ target: claimed.target, to: 0, next: null, cursor: null, ...DEED })

    assert.equal((await store.run(run))!.status, 'interrupted')
    assert.deepEqual(await statusesOf(store, run), ['planned'])
    await assertBooksBalance(store, run)
  })

  test('a revert brings back a run and the targets that recovery set aside, if they are still so', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await hire(store)
    const run = await startCrawl(store, ['a', 'b'])
    await claim(store, worker, 2)
    await bury(store, worker, 'park')
    await store.settle()
    const [a, b] = await allTargets(store, run)
    await store.replan(replan(run, { action: 'unpark', statuses: ['parked'], targets: [b!.id] }))
    const targets = [a!, b!].map(({ id, seq }) => ({ id, seq, status: 'parked' as const }))
    const plan = { run, to: 'interrupted', targets, cancel: null, undoes: 'park', ...DEED } as const

    assert.equal(await store.revert({ ...plan, from: 'failed' }), false, 'it is no longer failed')
    assert.equal(await store.revert({ ...plan, from: 'interrupted' }), true)

    assert.deepEqual(await statusesOf(store, run), ['planned', 'planned'])
    const restored = await targetOf(store, a!.id)
    assert.deepEqual([restored.epoch, restored.crashes], [a!.epoch + 1, 0])
    assert.equal(
      (await targetOf(store, b!.id)).epoch,
      b!.epoch,
      'what was not set aside stays as it is',
    )
    assert.ok((await store.run(run))!.reopenedAt !== null)
    await assertBooksBalance(store, run)
  })

  test('a revert of a retry takes the new run back, unless somebody has begun it', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const old = await beginOne(store, await hire(store))
    await bury(store, old.worker, 'retry')
    const next = (await store.liveRun(SOURCE))!
    const { id, seq } = await targetOf(store, old.target)
    const targets = [{ id, seq, status: 'failed' as const }]
    const plan = {
      run: old.run,
      from: 'failed',
      to: 'interrupted',
      targets,
      undoes: 'retry',
      ...DEED,
    } as const

    assert.equal(await store.revert({ ...plan, cancel: null }), false, 'the new run lives')
    assert.equal(await store.revert({ ...plan, cancel: next.id }), true)

    assert.equal((await store.run(next.id))!.status, 'cancelled')
    assert.equal((await store.liveRun(SOURCE))!.id, old.run)
    const taken = await beginOne(store, await hire(store))
    assert.equal(taken.target, old.target)

    await bury(store, taken.worker, 'retry')
    const third = await beginOne(store, await hire(store))
    assert.equal(await store.revert({ ...plan, cancel: third.run }), false, 'somebody has begun it')
    assert.equal((await store.run(third.run))!.status, 'running')
    await assertBooksBalance(store, old.run)
  })

  test('a revert is one transaction: of ten at once one takes it back', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 10 }, () => db.open()))
    const store = stores[0]!
    const run = await startCrawl(store, 1)
    const move = {
      run,
      to: 'abandoned',
      action: 'abandon',
      evidence: null,
      only: {},
      ...DEED,
    } as const
    await store.moveRun(move)
    const plan = {
      run,
      from: 'abandoned',
      to: 'queued',
      targets: [],
      cancel: null,
      undoes: 'abandon',
      ...DEED,
    } as const

    const reverted = await Promise.all(stores.map((store) => store.revert(plan)))

    assert.equal(reverted.filter(Boolean).length, 1)
    assert.equal((await store.audit({ run, limit: 50 })).length, 2)
  })

  test('a target that timed out is taken from its living worker, and that is an error and no crash', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await hire(store)
    const run = await startCrawl(store, ['a', 'b'])
    const claims = await claim(store, worker, 2)
    const held = await store.heldBy(worker, null, 10)
    await store.beat({ worker, claimIds: claims.map(({ claimId }) => claimId), loopLagMs: 0 })
    await save(store, claims[1]!)
    const because = 'timeout: process 1 is alive, but no progress for 16 min'
    const judgements = held.map((held) => ({
      held,
      decision: { action: 'resume' as const, because },
      sign: 'stalled' as const,
      evidence: EVIDENCE,
      newRun: newId(),
    }))

    const applied = await store.applyJudgements(judgements, 'the monitor')

    assert.deepEqual(applied, [true, false], 'one has moved on since')
    const target = await targetOf(store, claims[0]!.target)
    assert.deepEqual(
      [target.status, target.errors, target.crashes, target.lastError],
      ['planned', 1, 0, because],
    )
    assertLeaseLost((await store.checkpoint([page(claims[0]!)]))[0])
    await assertBooksBalance(store, run)
  })

  test('targets are found by the end of their id', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 5)
    const [first] = await allTargets(store, run)

    assert.deepEqual(await store.targetsEnding(first!.id.slice(-8)), [first!.id])
    assert.deepEqual(await store.targetsEnding(first!.id), [first!.id])
    assert.deepEqual(await store.targetsEnding('zzzzzzzz'), [])
  })
}
