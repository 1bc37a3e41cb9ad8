import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fingerprintOf } from '../../presenters/fingerprint.ts'
import type { RunId, WorkerId } from '../../core/model/id.ts'
import { allOk, claim, startCrawl } from '../../testing/fixtures.ts'
import { HOUR_MS, operator, type Operator } from '../../testing/operator.ts'
import { Paper } from '../../lib/terminal/text-writer.ts'
import { carryOut, planDeed } from './actions.ts'
import type { Plan } from './state.ts'

const NEVER = new AbortController().signal

function doorOf({ store }: Operator): { store: Operator['store']; actor: string } {
  return { store, actor: 'ada' }
}

function textOf({ text }: Plan): string {
  const paper = new Paper(200, false)
  text(paper)
  return paper.toString()
}

async function leaveOrphan(by: Operator, source: string): Promise<[RunId, WorkerId]> {
  const run = await startCrawl(by.store, 2, { source })
  const worker = await by.gone(source)
  await claim(by.store, worker, 1, { source })
  return [run, worker]
}

test('a recovery does what was shown, and what came up since waits for another look', async () => {
  await using by = await operator()
  const [shown] = await leaveOrphan(by, 'shown')
  const plan = await planDeed(doorOf(by), { kind: 'recover' }, NEVER)
  const [later] = await leaveOrphan(by, 'later')
  const { said } = await carryOut(doorOf(by), plan, NEVER)

  assert.equal(plan.question, 'Do this?')
  assert.equal(said, 'Recovery: 1 of 1 thing done.')
  assert.equal((await by.store.run(shown))?.counts.targets.in_progress, 0)
  assert.equal((await by.store.run(later))?.counts.targets.in_progress, 1)
})

test('somebody who was faster is told of, and nothing is done twice', async () => {
  await using by = await operator()
  await leaveOrphan(by, 'shop')
  const plan = await planDeed(doorOf(by), { kind: 'recover' }, NEVER)
  await carryOut(doorOf(by), plan, NEVER)
  const { said } = await carryOut(doorOf(by), plan, NEVER)
  assert.equal(said, 'Recovery: 0 of 1 thing done; 1 had changed meanwhile.')
  assert.equal((await by.store.audit({ limit: 10 })).length, 1)
})

test('what is dead is marked and can be taken back from where it was done', async () => {
  await using by = await operator()
  const run = await startCrawl(by.store, 1, { source: 'old' })
  const worker = await by.gone('old')
  await claim(by.store, worker, 1, { source: 'old' })
  await carryOut(doorOf(by), await planDeed(doorOf(by), { kind: 'recover' }, NEVER), NEVER)
  await by.database.later(30 * HOUR_MS)

  const plan = await planDeed(doorOf(by), { kind: 'clean' }, NEVER)
  assert.equal(plan.question, 'Mark 1 dead run as “Timeout – auto-cleaned”?')
  const { undo } = await carryOut(doorOf(by), plan, NEVER)
  assert.equal((await by.store.run(run))?.status, 'abandoned')
  assert.deepEqual(undo, [run])

  const back = await planDeed(doorOf(by), { kind: 'revert', runs: undo }, NEVER)
  assert.match(textOf(back), /The cleaning of run .* would be taken back/)
  await carryOut(doorOf(by), back, NEVER)
  assert.equal((await by.store.run(run))?.status, 'interrupted')
})

test('where nothing is to be done nothing is asked', async () => {
  await using by = await operator()
  await startCrawl(by.store, 1)
  for (const kind of ['recover', 'clean'] as const) {
    assert.equal((await planDeed(doorOf(by), { kind }, NEVER)).question, null)
  }
})

test('dead letters of one kind go back in line, those that were shown or none', async () => {
  await using by = await operator()
  const run = await startCrawl(by.store, 3, { source: 'shop' })
  const worker = await by.present('shop')
  const fail = async (error: string): Promise<void> => {
    const claimed = await claim(by.store, worker, 1, { source: 'shop' })
    allOk(await by.store.fail(claimed.map((one) => ({ ...one, error, retryInMs: null }))))
  }
  await fail('HTTP 403 for https://shop.example/1')
  await fail('the layout has changed')
  const deed = {
    kind: 'retry',
    fingerprint: fingerprintOf('HTTP 403 for https://x.example/'),
  } as const

  const plan = await planDeed(doorOf(by), deed, NEVER)
  assert.equal(plan.question, 'Put 1 target back in line?')
  await fail('HTTP 403 for https://shop.example/2')
  await assert.rejects(
    carryOut(doorOf(by), plan, NEVER),
    /Nothing was changed: they are not the same/,
  )

  const again = await planDeed(doorOf(by), deed, NEVER)
  assert.equal((await carryOut(doorOf(by), again, NEVER)).said, '2 targets back in line.')
  const { planned, failed } = (await by.store.run(run))!.counts.targets
  assert.deepEqual({ planned, failed }, { planned: 2, failed: 1 })
})
