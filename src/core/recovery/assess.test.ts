import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  assertAllOk,
  beginOne,
  operatorContext,
  registerWorker,
  unwrap,
} from '../../testing/fixtures.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { assessRun } from './assess.ts'

const TWO_DAYS_MS = 48 * 3_600_000

for (const [artifacts, action, hasProgress] of [
  [0, 'abandon', false],
  [1, 'resumable', true],
] as const) {
  test(`an old run without an owner, with ${artifacts} files of its command: ${action}`, async () => {
    await using db = await sqliteEngine.fresh()
    const store = await db.open()
    const claimed = await beginOne(store, await registerWorker(store))
    unwrap(await store.reportActivity(claimed, artifacts))
    assertAllOk(await store.release([claimed]))
    await store.settle()
    await db.advanceClock(TWO_DAYS_MS)

    const { decision, evidence } = await assessRun(
      operatorContext(store),
      (await store.run(claimed.run))!,
    )

    assert.equal(decision.action, action)
    assert.equal(evidence.hasProgress, hasProgress)
  })
}

test('an old run whose target has just been finished is not declared dead before it is settled', async () => {
  await using db = await sqliteEngine.fresh()
  const store = await db.open()
  const claimed = await beginOne(store, await registerWorker(store))
  await db.advanceClock(TWO_DAYS_MS)
  assertAllOk(await store.finish([claimed]))

  const run = (await store.run(claimed.run))!
  assert.equal(run.status, 'running')
  assert.equal((await assessRun(operatorContext(store), run)).ageDecision.action, 'leave')
})

test('a run whose worker sends heartbeats without progress has a stalled owner', async () => {
  await using db = await sqliteEngine.fresh()
  const store = await db.open()
  const worker = await registerWorker(store)
  const claimed = await beginOne(store, worker, { policy: { maxSilenceMs: 60_000 } })
  await db.advanceClock(120_000)
  await store.heartbeat({ worker, claimIds: [claimed.claimId], loopLagMs: 0 })

  const { owner } = await assessRun(operatorContext(store), (await store.run(claimed.run))!)

  assert.equal(owner!.assessment.liveness, 'stalled')
})
