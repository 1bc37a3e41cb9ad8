import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerId } from '../../model/id.ts'
import type { Action } from '../../model/verdict.ts'
import {
  recoverWorker,
  claimOne,
  registerWorker,
  pendingVerdicts,
  savePage,
  enqueueCrawl,
  getTarget,
  assertAllOk,
  beginOne,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { HeartbeatResult, Store } from '../store.ts'

/** Takes what a worker holds that seems lost, but is not proven dead. */
async function recoverFrom(
  store: Store,
  worker: WorkerId,
  action: Action = 'resume',
): Promise<void> {
  const verdicts = await pendingVerdicts(store, worker, action)
  const provisional = verdicts.map((one) => ({ ...one, isProvisional: true }))
  assert.deepEqual(await store.applyVerdicts(provisional, 'the tests'), [true])
}

function heartbeat(store: Store, worker: WorkerId): Promise<HeartbeatResult> {
  return store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
}

async function crashesOf(store: Store, target: string): Promise<number[]> {
  const { crashes, crashesAlone } = await getTarget(store, target)
  return [crashes, crashesAlone]
}

const SINGLE_SLOT = { isIdle: true, singleSlot: true }

export function lostClaimTests(engine: Engine): void {
  for (const alone of [true, false]) {
    test(`P9 P11 the crash of a worker that sends heartbeats again is struck off, ${alone ? 'alone' : 'beside others'}`, async () => {
      await using db = await engine.fresh()
      const store = await db.open()
      const worker = await registerWorker(store)
      await enqueueCrawl(store, 1)
      const { target } = await claimOne(store, worker, { isIdle: true, singleSlot: alone })
      await recoverFrom(store, worker)
      assert.deepEqual(await crashesOf(store, target), [1, alone ? 1 : 0])

      await heartbeat(store, worker)
      assert.deepEqual(await crashesOf(store, target), [0, 0])
      await heartbeat(store, worker)
      assert.deepEqual(await crashesOf(store, target), [0, 0], 'once')
      const again = await claimOne(store, worker)
      assert.equal(again.crashedBefore, false)
    })
  }

  test('P11 only its own crash is struck off, also while another has the target', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [lost, dead, other] = [
      await registerWorker(store),
      await registerWorker(store),
      await registerWorker(store),
    ]
    await enqueueCrawl(store, 1)
    const { target } = await claimOne(store, lost, SINGLE_SLOT)
    await recoverFrom(store, lost)
    await claimOne(store, dead, SINGLE_SLOT)
    await recoverWorker(store, dead)
    const held = await claimOne(store, other, SINGLE_SLOT)

    await heartbeat(store, lost)

    assertAllOk(await store.release([held]))
    assert.deepEqual(await crashesOf(store, target), [1, 1])
  })

  const resets: Record<string, (store: Store, target: string, run: string) => Promise<unknown>> = {
    'a saved page': async (store) =>
      assertAllOk(
        await store.release([
          await savePage(store, await claimOne(store, await registerWorker(store), SINGLE_SLOT)),
        ]),
      ),
    'a rewind': (store, target) =>
      store.rewind({ target, to: 0, next: null, cursor: null, actor: 'a person', because: 'x' }),
    'an unpark': async (store, target, run) => {
      await store.parkTargets({ targets: [target], actor: 'a person', because: 'x' })
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
      const [lost, dead] = [await registerWorker(store), await registerWorker(store)]
      const run = await enqueueCrawl(store, 1)
      const { target } = await claimOne(store, lost, SINGLE_SLOT)
      await recoverFrom(store, lost)
      await reset(store, target, run)
      assert.deepEqual(await crashesOf(store, target), [0, 0])
      await claimOne(store, dead, SINGLE_SLOT)
      await recoverWorker(store, dead)

      await heartbeat(store, lost)

      assert.deepEqual(await crashesOf(store, target), [1, 1])
    })
  }

  test('P11 the same after progress that a run with one target reported', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [lost, dead] = [await registerWorker(store), await registerWorker(store)]
    const { target } = await beginOne(store, lost)
    await recoverFrom(store, lost)
    const other = await beginOne(store, await registerWorker(store))
    assert.ok((await store.reportProgress(other, { done: 1, total: 2 })).ok)
    assertAllOk(await store.release([other]))
    await beginOne(store, dead)
    await recoverWorker(store, dead)

    await heartbeat(store, lost)

    assert.deepEqual(await crashesOf(store, target), [1, 1])
  })

  test('P11 a proven crash stays counted, as does one of a worker that has ended', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [proven, ended] = [await registerWorker(store), await registerWorker(store)]
    await enqueueCrawl(store, 1)
    const { target } = await claimOne(store, proven, SINGLE_SLOT)
    await recoverWorker(store, proven)
    await heartbeat(store, proven)
    assert.deepEqual(await crashesOf(store, target), [1, 1])
    await claimOne(store, ended, SINGLE_SLOT)
    await recoverFrom(store, ended)
    await store.retireWorker(ended)

    await heartbeat(store, ended)

    assert.deepEqual(await crashesOf(store, target), [2, 2])
  })

  test('P9 a target that was parked for such a crash is named once, to be put back', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [dead, lost] = [await registerWorker(store), await registerWorker(store)]
    const run = await enqueueCrawl(store, 1)
    const { target } = await claimOne(store, dead, SINGLE_SLOT)
    await recoverWorker(store, dead)
    await claimOne(store, lost, SINGLE_SLOT)
    await recoverFrom(store, lost, 'park')
    assert.equal((await getTarget(store, target)).status, 'parked')

    assert.deepEqual((await heartbeat(store, lost)).unpark, [{ run, target }])
    assert.deepEqual((await heartbeat(store, lost)).unpark, [])
    assert.deepEqual(await crashesOf(store, target), [1, 1])
    await assertCountersConsistent(store, run)
  })
}
