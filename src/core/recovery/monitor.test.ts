import assert from 'node:assert/strict'
import { test } from 'node:test'
import { STEADY } from '../decide/liveness.ts'
import type { UnstuckEvent } from '../model/event.ts'
import { DEFAULT_POLICY } from '../model/policy.ts'
import { claim, claimOne, hire, save, SOURCE, startCrawl } from '../../testing/fixtures.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { caretaking, Monitor } from './monitor.ts'

test('it looks every minute, or twice within the shortest limit of a policy, but not more than once a second', () => {
  const every = (policy: object) => caretaking({ ...DEFAULT_POLICY, ...policy }).monitorEveryMs

  assert.equal(every({}), 60_000)
  assert.equal(every({ maxSilenceMs: 20_000 }), 10_000)
  assert.equal(every({ maxDurationMs: 30_000 }), 15_000)
  assert.equal(every({ groups: { CA: { maxSilenceMs: 4_000 } } }), 2_000)
  assert.equal(every({ maxSilenceMs: 100 }), 1_000)
})

test('what is left to people is told once per cause, a crawl that stands still as one, and again when it came back', async () => {
  await using db = await sqliteEngine.fresh()
  const store = await db.open()
  const worker = await hire(store)
  await startCrawl(store, 5)
  const claims = await claim(store, worker, 3)
  const claimIds = claims.map(({ claimId }) => claimId)
  const told: UnstuckEvent[] = []
  const monitor = new Monitor({ store, actor: 'the tests' }, (event) => told.push(event))
  const look = async (laterMs: number): Promise<UnstuckEvent[]> => {
    await db.later(laterMs)
    await store.beat({ worker, claimIds, loopLagMs: 0 })
    told.length = 0
    await monitor.look(STEADY, worker)
    return [...told]
  }

  assert.deepEqual(await look(60_000), [])
  const [alert, ...more] = await look(20 * 60_000)
  assert.deepEqual(more, [])
  assert.ok(alert?.type === 'alert')
  assert.deepEqual([alert.source, alert.target], [SOURCE, null])
  assert.match(alert.because, /timeout: .*no progress for 21 min/)
  assert.match(alert.command, /unstuck explain \w{8}/)
  assert.deepEqual(await look(1_000), [], 'it is known already')

  // One target moves: the crawl is well as a whole, two of its targets are not.
  await save(store, claims[0]!)
  const targets = (await look(1_000)).map((event) => event.type === 'alert' && event.target)
  assert.deepEqual(targets.toSorted(), [claims[1]!.target, claims[2]!.target].toSorted())
  assert.equal((await look(20 * 60_000)).length, 1, 'the crawl stands still again')
})

test('what it did is told as a recovery', async () => {
  await using db = await sqliteEngine.fresh()
  const store = await db.open()
  const worker = await hire(store)
  await startCrawl(store, 1, { policy: { onStalled: 'resume' } })
  const { claimId } = await claimOne(store, worker)
  await db.later(20 * 60_000)
  await store.beat({ worker, claimIds: [claimId], loopLagMs: 0 })
  const told: UnstuckEvent[] = []

  const verdicts = await new Monitor({ store, actor: 'x' }, (event) => told.push(event)).look(
    STEADY,
  )

  assert.deepEqual(
    told.map(({ type }) => type),
    ['recovery', 'alert'],
    'taken back; and that nothing moves in the crawl is a word for people',
  )
  assert.equal(verdicts.filter(({ applied }) => applied).length, 1)
})
