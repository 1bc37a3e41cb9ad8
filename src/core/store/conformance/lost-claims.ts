import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerId } from '../../model/id.ts'
import type { Action } from '../../model/verdict.ts'
import {
  bury,
  claimOne,
  hire,
  judge,
  save,
  startCrawl,
  targetOf,
  allOk,
  beginOne,
} from '../../../testing/fixtures.ts'
import { assertBooksBalance } from '../../../testing/assert-counters.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { BeatAnswer, Store } from '../store.ts'

/** Takes what a worker holds that seems lost, but is not proven dead. */
async function take(store: Store, worker: WorkerId, action: Action = 'resume'): Promise<void> {
  const judgements = await judge(store, worker, action)
  const provisional = judgements.map((one) => ({ ...one, provisional: true }))
  assert.deepEqual(await store.applyJudgements(provisional, 'the tests'), [true])
}

function beat(store: Store, worker: WorkerId): Promise<BeatAnswer> {
  return store.beat({ worker, claimIds: [], loopLagMs: 0 })
}

async function crashesOf(store: Store, target: string): Promise<number[]> {
  const { crashes, crashesAlone } = await targetOf(store, target)
  return [crashes, crashesAlone]
}

const ALONE = { empty: true, alone: true }

export function lostClaimTests(engine: Engine): void {
  for (const alone of [true, false]) {
    test(`P9 P11 the crash of a worker that sends heartbeats again is struck off, ${alone ? 'alone' : 'beside others'}`, async () => {
      await using db = await engine.fresh()
      const store = await db.open()
      const worker = await hire(store)
      await startCrawl(store, 1)
      const { target } = await claimOne(store, worker, { empty: true, alone })
      await take(store, worker)
      assert.deepEqual(await crashesOf(store, target), [1, alone ? 1 : 0])

      await beat(store, worker)
      assert.deepEqual(await crashesOf(store, target), [0, 0])
      await beat(store, worker)
      assert.deepEqual(await crashesOf(store, target), [0, 0], 'once')
      const again = await claimOne(store, worker)
      assert.equal(again.suspect, false)
    })
  }

  test('P11 only its own crash is struck off, also while another has the target', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [lost, dead, other] = [await hire(store), await hire(store), await hire(store)]
    await startCrawl(store, 1)
    const { target } = await claimOne(store, lost, ALONE)
    await take(store, lost)
    await claimOne(store, dead, ALONE)
    await bury(store, dead)
    const held = await claimOne(store, other, ALONE)

    await beat(store, lost)

    allOk(await store.release([held]))
    assert.deepEqual(await crashesOf(store, target), [1, 1])
  })

  const resets: Record<string, (store: Store, target: string, run: string) => Promise<unknown>> = {
    'a saved page': async (store) =>
      allOk(
        await store.release([await save(store, await claimOne(store, await hire(store), ALONE))]),
      ),
    'a rewind': (store, target) =>
      store.rewind({ target, to: 0, next: null, cursor: null, actor: 'a person', because: 'x' }),
    'an unpark': async (store, target, run) => {
      await store.setAside({ targets: [target], actor: 'a person', because: 'x' })
      await store.replan({
        run,
        action: 'unpark',
        statuses: ['parked'],
        targets: [target],
        reopen: false,
        dryRun: false,
        actor: 'a person',
        because: 'x',
      })
    },
  }
  for (const [how, reset] of Object.entries(resets)) {
    test(`P11 after ${how} there is nothing left to strike off: later crashes stay counted`, async () => {
      await using db = await engine.fresh()
      const store = await db.open()
      const [lost, dead] = [await hire(store), await hire(store)]
      const run = await startCrawl(store, 1)
      const { target } = await claimOne(store, lost, ALONE)
      await take(store, lost)
      await reset(store, target, run)
      assert.deepEqual(await crashesOf(store, target), [0, 0])
      await claimOne(store, dead, ALONE)
      await bury(store, dead)

      await beat(store, lost)

      assert.deepEqual(await crashesOf(store, target), [1, 1])
    })
  }

  test('P11 the same after progress that a run with one target reported', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [lost, dead] = [await hire(store), await hire(store)]
    const { target } = await beginOne(store, lost)
    await take(store, lost)
    const other = await beginOne(store, await hire(store))
    assert.ok((await store.reportProgress(other, { done: 1, total: 2 })).ok)
    allOk(await store.release([other]))
    await beginOne(store, dead)
    await bury(store, dead)

    await beat(store, lost)

    assert.deepEqual(await crashesOf(store, target), [1, 1])
  })

  test('P11 a proven crash stays counted, as does one of a worker that has ended', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [proven, ended] = [await hire(store), await hire(store)]
    await startCrawl(store, 1)
    const { target } = await claimOne(store, proven, ALONE)
    await bury(store, proven)
    await beat(store, proven)
    assert.deepEqual(await crashesOf(store, target), [1, 1])
    await claimOne(store, ended, ALONE)
    await take(store, ended)
    await store.retire(ended)

    await beat(store, ended)

    assert.deepEqual(await crashesOf(store, target), [2, 2])
  })

  test('P9 a target that was parked for such a crash is named once, to be put back', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [dead, lost] = [await hire(store), await hire(store)]
    const run = await startCrawl(store, 1)
    const { target } = await claimOne(store, dead, ALONE)
    await bury(store, dead)
    await claimOne(store, lost, ALONE)
    await take(store, lost, 'park')
    assert.equal((await targetOf(store, target)).status, 'parked')

    assert.deepEqual((await beat(store, lost)).unpark, [{ run, target }])
    assert.deepEqual((await beat(store, lost)).unpark, [])
    assert.deepEqual(await crashesOf(store, target), [1, 1])
    await assertBooksBalance(store, run)
  })
}
