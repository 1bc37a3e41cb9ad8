import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TRUSTED_OBSERVER } from '../decide/liveness.ts'
import type { UnstuckEvent } from '../model/event.ts'
import { DEFAULT_POLICY } from '../model/policy.ts'
import {
  operatorContext,
  claim,
  claimOne,
  registerWorker,
  savePage,
  SOURCE,
  enqueueCrawl,
} from '../../testing/fixtures.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { monitorInterval, Monitor } from './monitor.ts'

test('the monitor runs every minute, or twice within the shortest policy limit, but at most once a second', () => {
  const every = (policy: object) => monitorInterval({ ...DEFAULT_POLICY, ...policy })

  assert.equal(every({}), 60_000)
  assert.equal(every({ maxSilenceMs: 20_000 }), 10_000)
  assert.equal(every({ maxDurationMs: 30_000 }), 15_000)
  assert.equal(every({ groups: { CA: { maxSilenceMs: 4_000 } } }), 2_000)
  assert.equal(every({ maxSilenceMs: 100 }), 1_000)
})

test('a run that needs attention is logged once per cause, a stalled crawl as one, and again when it recurs', async () => {
  await using db = await sqliteEngine.fresh()
  const store = await db.open()
  const worker = await registerWorker(store)
  await enqueueCrawl(store, 5)
  const claims = await claim(store, worker, 3)
  const claimIds = claims.map(({ claimId }) => claimId)
  const told: UnstuckEvent[] = []
  const monitor = new Monitor(operatorContext(store), (event) => told.push(event))
  const look = async (laterMs: number): Promise<UnstuckEvent[]> => {
    await db.advanceClock(laterMs)
    await store.heartbeat({ worker, claimIds, loopLagMs: 0 })
    told.length = 0
    await monitor.runOnce(TRUSTED_OBSERVER, worker)
    return [...told]
  }

  assert.deepEqual(await look(60_000), [])
  const [alert, ...more] = await look(20 * 60_000)
  assert.deepEqual(more, [])
  assert.ok(alert?.type === 'alert')
  assert.deepEqual([alert.source, alert.target], [SOURCE, null])
  assert.match(alert.because, /alive: .*no progress for 21 min/)
  assert.match(alert.command, /unstuck explain \w{8}/)
  assert.deepEqual(await look(1_000), [], 'it is known already')

  // One target moves: the crawl is well as a whole, two of its targets are not.
  await savePage(store, claims[0]!)
  const targets = (await look(1_000)).map((event) => event.type === 'alert' && event.target)
  assert.deepEqual(targets.toSorted(), [claims[1]!.target, claims[2]!.target].toSorted())
  assert.equal((await look(20 * 60_000)).length, 1, 'the crawl stands still again')
})

test('changes by the monitor are emitted as recovery events', async () => {
  await using db = await sqliteEngine.fresh()
  const store = await db.open()
  const worker = await registerWorker(store)
  await enqueueCrawl(store, 1, { policy: { onStalled: 'resume' } })
  const { claimId } = await claimOne(store, worker)
  await db.advanceClock(20 * 60_000)
  await store.heartbeat({ worker, claimIds: [claimId], loopLagMs: 0 })
  const told: UnstuckEvent[] = []

  const verdicts = await new Monitor(operatorContext(store), (event) => told.push(event)).runOnce(
    TRUSTED_OBSERVER,
  )

  assert.deepEqual(
    told.map(({ type }) => type),
    ['recovery', 'alert'],
    'taken back; and that nothing moves in the crawl is a word for people',
  )
  assert.equal(verdicts.filter(({ applied }) => applied).length, 1)
})
