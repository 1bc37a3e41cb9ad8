import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { slackChannel } from './channels.ts'
import type { Store } from '../../core/store/store.ts'
import {
  makeAlertService,
  ALLOW_LOCAL,
  rulesTo,
  receivedAlerts,
  waitUntil,
  webhookTo,
} from '../../testing/alert-test-service.ts'
import {
  claimOne,
  registerWorker,
  enqueueCrawl,
  enqueueInterrupted,
} from '../../testing/fixtures.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { httpSink } from '../../testing/test-receivers.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { ALERT_STORE } from './store/store.ts'

const HOUR = 3_600_000
/** Gives up at once on what does not take a message. */
const instantClock = { ...REAL_CLOCK, sleep: async () => {} }

function cancel(store: Store, run: string): Promise<unknown> {
  const request = { action: 'cancel', actor: 'a person', because: 'enough' } as const
  return store.moveRun({ run, to: 'cancelled', ...request, evidence: null, expected: {} })
}

async function parkOne(store: Store, source: string, registered?: string): Promise<string> {
  const worker = registered ?? (await registerWorker(store, { source }))
  const run = await enqueueCrawl(store, 1, { source })
  const claimed = await claimOne(store, worker, { source })
  await store.fail([{ ...claimed, error: 'poison', becomes: 'parked' }])
  await store.settle(run)
  return run
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(`notifications on ${engine.name}`, () => {
    test('two configs on one database each notify their own channels, and resolve only their own alerts', async () => {
      await using db = await engine.fresh()
      await using ours = await httpSink()
      await using theirs = await httpSink()
      const store = await db.open()
      const of = (source: string) =>
        rulesTo('webhook').map((one) => ({ ...one, sources: [source] }))
      const [shop, feed] = [
        makeAlertService(store, [webhookTo(ours)], { rules: of('shop') }),
        makeAlertService(await db.open(), [webhookTo(theirs)], { rules: of('feed') }),
      ]
      const plain = makeAlertService(await db.open(), [], { rules: [] })
      const run = await enqueueInterrupted(store, 1, { source: 'shop' })
      await enqueueInterrupted(store, 1, { source: 'feed' })
      await db.advanceClock(25 * HOUR)
      for (let n = 0; n < 2; n++) for (const one of [shop, feed, plain]) await one.check()
      await Promise.all([ours.wait(1), theirs.wait(1)])
      assert.equal((await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).length, 2)
      assert.deepEqual([ours, theirs].map(receivedAlerts), [['raised dead'], ['raised dead']])

      await waitUntil(async () =>
        (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).every(
          ({ lastSentAt }) => lastSentAt,
        ),
      )
      await cancel(store, run)
      for (const one of [feed, plain, shop]) await one.check()
      await ours.wait(2)
      assert.deepEqual([ours, theirs].map(receivedAlerts), [
        ['raised dead', 'resolved dead'],
        ['raised dead'],
      ])
      for (const one of [shop, feed, plain]) await one.stop()
    })

    test('editing the config repeats no notification, and alerts without a rule expire', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      const run = await enqueueInterrupted(store, 1)
      await parkOne(store, 'feed')
      await db.advanceClock(25 * HOUR)
      const before = makeAlertService(store, [webhookTo(sink)])
      await before.check()
      await sink.wait(2)
      await waitUntil(async () =>
        (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).every(
          ({ lastSentAt }) => lastSentAt,
        ),
      )
      await before.stop()

      const dead = rulesTo('webhook').filter(({ when }) => when === 'dead')
      const after = makeAlertService(store, [webhookTo(sink)], { rules: dead })
      await db.advanceClock(3 * 60_000)
      await after.check()
      assert.equal((await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).length, 2)
      await db.advanceClock(8 * 60_000)
      await after.check()
      assert.deepEqual(
        (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).map(
          ({ rule }) => rule,
        ),
        ['dead'],
      )
      await cancel(store, run)
      await after.check()
      await sink.wait(3)
      assert.deepEqual(receivedAlerts(sink).sort(), [
        'raised dead',
        'raised parked',
        'resolved dead',
      ])
      await after.stop()
    })

    test('a silent run that dies is not reported as resolved', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      const worker = await registerWorker(store)
      const run = await enqueueCrawl(store, 1)
      await claimOne(store, worker)
      await db.advanceClock(2 * HOUR)
      const one = makeAlertService(store, [webhookTo(sink)])
      await one.check()
      await sink.wait(1)
      await waitUntil(async () =>
        (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).every(
          ({ lastSentAt }) => lastSentAt,
        ),
      )
      await db.advanceClock(25 * HOUR)
      await one.check()
      await sink.wait(2)
      await waitUntil(async () =>
        (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).every(
          ({ lastSentAt }) => lastSentAt,
        ),
      )
      await db.advanceClock(120_000)
      await one.check()
      assert.deepEqual(receivedAlerts(sink), ['raised silent', 'raised dead'])
      await cancel(store, run)
      await one.check()
      await sink.wait(3)
      await db.advanceClock(120_000)
      one.start()
      await one.finish()
      assert.deepEqual(
        new Set(receivedAlerts(sink)),
        new Set(['raised silent', 'raised dead', 'resolved dead']),
      )
      await one.stop()
    })

    test('an undelivered resolution is sent by the next process', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      const run = await enqueueInterrupted(store, 1)
      await db.advanceClock(25 * HOUR)
      const first = makeAlertService(store, [webhookTo(sink)])
      await first.check()
      await waitUntil(async () =>
        (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).every(
          ({ lastSentAt }) => lastSentAt,
        ),
      )
      sink.reply = 'hang'
      await cancel(store, run)
      await first.check()
      await sink.wait(2)
      await first.stop()
      assert.deepEqual(await (await store.extend(ALERT_STORE)).listAlerts({ open: true }), [])

      sink.reply = 200
      const second = makeAlertService(store, [webhookTo(sink)])
      await second.check()
      await db.advanceClock(60_000)
      await second.check()
      await sink.wait(3)
      assert.deepEqual(receivedAlerts(sink), ['raised dead', 'resolved dead', 'resolved dead'])
      await waitUntil(async () => {
        await db.advanceClock(60_000)
        await second.check()
        const { deliveries } = (
          await (await store.extend(ALERT_STORE)).listAlerts({ open: false, limit: 1 })
        )[0]!
        return Object.values(deliveries).every(({ endedAt }) => endedAt !== null)
      })
      await second.stop()
    })

    test('alerts delivered to one channel still go to the others', async () => {
      await using db = await engine.fresh()
      await using hook = await httpSink()
      await using slack = await httpSink()
      slack.reply = 500
      const store = await db.open()
      await enqueueInterrupted(store, 1)
      await db.advanceClock(25 * HOUR)
      const channels = [webhookTo(hook), slackChannel({ url: slack.url, ...ALLOW_LOCAL })]
      const rules = rulesTo('webhook', 'slack').map((rule) => ({ ...rule, repeatMs: null }))
      const one = makeAlertService(store, channels, { rules, clock: instantClock })
      await one.check()
      await Promise.all([hook.wait(1), slack.wait(5)])
      slack.reply = 200
      await waitUntil(async () => {
        await db.advanceClock(60_000)
        await one.check()
        return slack.received.length > 5
      })
      assert.deepEqual(receivedAlerts(hook), ['raised dead'])
      await one.stop()
    })

    test('more than ten of a kind at once are one message', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      for (let n = 0; n < 11; n++) await enqueueInterrupted(store, 1, { source: `s${n}` })
      await db.advanceClock(25 * HOUR)
      const one = makeAlertService(store, [webhookTo(sink)])
      one.start()
      await one.finish()
      const [{ body }] = sink.received as [any]
      assert.equal(sink.received.length, 1)
      assert.equal(body.headline, '11 dead runs')
      assert.match(body.alert.because, /^s\d+: .*; s\d+: .* and 8 more$/)
      assert.equal(body.alert.command, 'unstuck alerts list')
      assert.equal(body.causes.length, 11)
      assert.ok(
        (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).every(
          ({ lastSentAt }) => lastSentAt !== null,
        ),
      )
    })
  })
}

test('a parked target is not forgotten because many runs failed after it', async () => {
  await using db = await sqliteEngine.fresh()
  const store = await db.open()
  // Long, because it claims a hundred times without ever beating.
  const worker = await registerWorker(store, { source: 'a', leaseMs: 3_600_000 })
  const run = await parkOne(store, 'rare')
  const one = makeAlertService(store, [])
  await one.check()
  for (let n = 0; n < 101; n++) await parkOne(store, 'a', worker)
  // As if more sources had failed since than are looked at.
  const many: Store = {
    ...store,
    runs: (filter) => store.runs(filter.latestFailed ? { ...filter, limit: 1 } : filter),
  }
  const other = makeAlertService(many, [])
  for (const service of [one, other]) await service.check()
  const open = await (await store.extend(ALERT_STORE)).listAlerts({ open: true })
  assert.equal(open.length, 2)
  assert.ok(open.some((alert) => alert.run === run))
  await enqueueCrawl(store, 1, { source: 'rare' })
  await other.check()
  assert.equal((await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).length, 1)
})
