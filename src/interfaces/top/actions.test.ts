import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fingerprintOf } from '../../presenters/fingerprint.ts'
import type { RunId, WorkerId } from '../../core/model/id.ts'
import { operatorContext, assertAllOk, claim, enqueueCrawl } from '../../testing/fixtures.ts'
import {
  HOUR_MS,
  createCliTestContext,
  type CliTestContext,
} from '../../testing/cli-test-context.ts'
import { TextWriter } from '../../lib/terminal/text-writer.ts'
import { planAction, type Plan } from './actions.ts'

const NEVER = new AbortController().signal

function textOf({ sections }: Plan): string {
  const writer = new TextWriter(200, false)
  writer.sections(sections)
  return writer.toString()
}

async function createOrphan(ctx: CliTestContext, source: string): Promise<[RunId, WorkerId]> {
  const run = await enqueueCrawl(ctx.store, 2, { source })
  const worker = await ctx.registerDeadWorker(source)
  await claim(ctx.store, worker, 1, { source })
  return [run, worker]
}

test('a recovery applies what was shown, and newer verdicts wait for the next preview', async () => {
  await using ctx = await createCliTestContext()
  const [shown] = await createOrphan(ctx, 'shown')
  const plan = await planAction(operatorContext(ctx.store, 'ada'), { kind: 'recover' }, NEVER)
  const [later] = await createOrphan(ctx, 'later')
  const { message } = await plan.apply()

  assert.equal(plan.question, 'Apply this verdict?')
  const rest = '1 thing needs attention. See `unstuck status`.'
  assert.equal(message, `1 verdict applied. ${rest}`)
  assert.equal((await ctx.store.run(shown))?.counts.targets.in_progress, 0)
  assert.equal((await ctx.store.run(later))?.counts.targets.in_progress, 1)
})

test('a concurrent change is reported, and nothing is applied twice', async () => {
  await using ctx = await createCliTestContext()
  await createOrphan(ctx, 'shop')
  const plan = await planAction(operatorContext(ctx.store, 'ada'), { kind: 'recover' }, NEVER)
  await plan.apply()
  const { message } = await plan.apply()
  assert.equal(message, '0 verdicts applied. 1 not applied: changed meanwhile.')
  assert.equal((await ctx.store.audit({ limit: 10 })).length, 1)
})

test('dead runs are marked and can be reverted from the same screen', async () => {
  await using ctx = await createCliTestContext()
  const run = await enqueueCrawl(ctx.store, 1, { source: 'old' })
  const worker = await ctx.registerDeadWorker('old')
  await claim(ctx.store, worker, 1, { source: 'old' })
  await (await planAction(operatorContext(ctx.store, 'ada'), { kind: 'recover' }, NEVER)).apply()
  await ctx.database.advanceClock(30 * HOUR_MS)

  const plan = await planAction(operatorContext(ctx.store, 'ada'), { kind: 'clean' }, NEVER)
  assert.equal(plan.question, 'Mark 1 dead run as “Timeout – auto-cleaned”?')
  const { undo } = await plan.apply()
  assert.equal((await ctx.store.run(run))?.status, 'abandoned')
  assert.deepEqual(undo, [run])

  const back = await planAction(
    operatorContext(ctx.store, 'ada'),
    { kind: 'revert', runs: undo },
    NEVER,
  )
  assert.match(textOf(back), /Would revert "clean" on run /)
  await back.apply()
  assert.equal((await ctx.store.run(run))?.status, 'interrupted')
})

test('nothing is asked when there is nothing to apply', async () => {
  await using ctx = await createCliTestContext()
  await enqueueCrawl(ctx.store, 1)
  for (const kind of ['recover', 'clean'] as const) {
    assert.equal(
      (await planAction(operatorContext(ctx.store, 'ada'), { kind }, NEVER)).question,
      null,
    )
  }
})

test('dead letters of one kind are requeued, exactly those shown or none', async () => {
  await using ctx = await createCliTestContext()
  const run = await enqueueCrawl(ctx.store, 3, { source: 'shop' })
  const worker = await ctx.registerLiveWorker('shop')
  const fail = async (error: string): Promise<void> => {
    const claimed = await claim(ctx.store, worker, 1, { source: 'shop' })
    assertAllOk(await ctx.store.fail(claimed.map((one) => ({ ...one, error, becomes: 'failed' }))))
  }
  await fail('HTTP 403 for https://shop.example/1')
  await fail('the layout has changed')
  const request = {
    kind: 'replan',
    fingerprint: fingerprintOf('HTTP 403 for https://x.example/'),
  } as const

  const plan = await planAction(operatorContext(ctx.store, 'ada'), request, NEVER)
  assert.equal(plan.question, 'Put 1 target back in the queue?')
  await fail('HTTP 403 for https://shop.example/2')
  await assert.rejects(plan.apply(), /Nothing was changed: the targets are not the same/)

  const again = await planAction(operatorContext(ctx.store, 'ada'), request, NEVER)
  assert.equal((await again.apply()).message, '2 targets in 1 run put back in the queue.')
  const { planned, failed } = (await ctx.store.run(run))!.counts.targets
  assert.deepEqual({ planned, failed }, { planned: 2, failed: 1 })
})

test('the source of a run is paused, and with the same key unpaused', async () => {
  await using ctx = await createCliTestContext()
  const run = await enqueueCrawl(ctx.store, 2, { source: 'shop' })
  const context = operatorContext(ctx.store, 'ada')
  for (const [question, message] of [
    ['Pause shop?', /^shop is paused/],
    ['End the pause of shop?', /^shop is no longer paused/],
  ] as const) {
    const plan = await planAction(context, { kind: 'pause', run }, NEVER)
    assert.equal(plan.question, question)
    assert.match((await plan.apply()).message, message)
  }
  assert.equal((await ctx.store.run(run))!.paused, null)
})
