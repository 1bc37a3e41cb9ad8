import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { slackChannel } from './slack.ts'
import type { Store } from '../../core/store/store.ts'
import {
  alertService,
  LOCAL,
  rulesTo,
  toldTo,
  until,
  webhookTo,
} from '../../testing/alert-context.ts'
import { claimOne, hire, startCrawl } from '../../testing/fixtures.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { httpSink } from '../../testing/sinks.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'

const HOUR = 3_600_000
/** Gives up at once on what does not take a message. */
const hasty = { ...REAL_CLOCK, sleep: async () => {} }

function cancel(store: Store, run: string): Promise<unknown> {
  const deed = { action: 'cancel', actor: 'a person', because: 'enough' } as const
  return store.moveRun({ run, to: 'cancelled', ...deed, evidence: null, only: {} })
}

async function parkOne(store: Store, source: string, hand?: string): Promise<string> {
  const worker = hand ?? (await hire(store, { source }))
  const run = await startCrawl(store, 1, { source })
  const claimed = await claimOne(store, worker, { source })
  await store.park([{ ...claimed, reason: 'poison' }])
  await store.settle(run)
  return run
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(`telling on ${engine.name}`, () => {
    test('of two configs on one database each tells its own people, and resolves only what is its own', async () => {
      await using db = await engine.fresh()
      await using ours = await httpSink()
      await using theirs = await httpSink()
      const store = await db.open()
      const of = (source: string) =>
        rulesTo('webhook').map((one) => ({ ...one, sources: [source] }))
      const [shop, feed] = [
        alertService(store, [webhookTo(ours)], { rules: of('shop') }),
        alertService(await db.open(), [webhookTo(theirs)], { rules: of('feed') }),
      ]
      const plain = alertService(await db.open(), [], { rules: [] })
      const run = await startCrawl(store, 1, { source: 'shop' })
      await startCrawl(store, 1, { source: 'feed' })
      await db.later(25 * HOUR)
      for (let n = 0; n < 2; n++) for (const one of [shop, feed, plain]) await one.look()
      await Promise.all([ours.wait(1), theirs.wait(1)])
      assert.equal((await store.openAlerts()).length, 2)
      assert.deepEqual([ours, theirs].map(toldTo), [['raised dead'], ['raised dead']])

      await until(async () => (await store.openAlerts()).every(({ lastSentAt }) => lastSentAt))
      await cancel(store, run)
      for (const one of [feed, plain, shop]) await one.look()
      await ours.wait(2)
      assert.deepEqual([ours, theirs].map(toldTo), [
        ['raised dead', 'resolved dead'],
        ['raised dead'],
      ])
      for (const one of [shop, feed, plain]) await one.stop()
    })

    test('when the config was edited nobody is told again, and what no rule asks for any more goes in time', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      const run = await startCrawl(store, 1)
      await parkOne(store, 'feed')
      await db.later(25 * HOUR)
      const before = alertService(store, [webhookTo(sink)])
      await before.look()
      await sink.wait(2)
      await until(async () => (await store.openAlerts()).every(({ lastSentAt }) => lastSentAt))
      await before.stop()

      const dead = rulesTo('webhook').filter(({ when }) => when === 'dead')
      const after = alertService(store, [webhookTo(sink)], { rules: dead })
      await db.later(3 * 60_000)
      await after.look()
      assert.equal((await store.openAlerts()).length, 2)
      await db.later(8 * 60_000)
      await after.look()
      assert.deepEqual(
        (await store.openAlerts()).map(({ rule }) => rule),
        ['dead'],
      )
      await cancel(store, run)
      await after.look()
      await sink.wait(3)
      assert.deepEqual(toldTo(sink).sort(), ['raised dead', 'raised parked', 'resolved dead'])
      await after.stop()
    })

    test('a silent run that dies is not told to be over', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      const worker = await hire(store)
      const run = await startCrawl(store, 1)
      await claimOne(store, worker)
      await db.later(2 * HOUR)
      const one = alertService(store, [webhookTo(sink)])
      await one.look()
      await sink.wait(1)
      await until(async () => (await store.openAlerts()).every(({ lastSentAt }) => lastSentAt))
      await db.later(25 * HOUR)
      await one.look()
      await sink.wait(2)
      await until(async () => (await store.openAlerts()).every(({ lastSentAt }) => lastSentAt))
      await db.later(120_000)
      await one.look()
      assert.deepEqual(toldTo(sink), ['raised silent', 'raised dead'])
      await cancel(store, run)
      await one.look()
      await sink.wait(3)
      await db.later(120_000)
      one.start()
      await one.finish()
      assert.deepEqual(
        new Set(toldTo(sink)),
        new Set(['raised silent', 'raised dead', 'resolved dead']),
      )
      await one.stop()
    })

    test('an end that could not be told is told by whoever comes next', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      const run = await startCrawl(store, 1)
      await db.later(25 * HOUR)
      const first = alertService(store, [webhookTo(sink)])
      await first.look()
      await until(async () => (await store.openAlerts()).every(({ lastSentAt }) => lastSentAt))
      sink.answer = 'hang'
      await cancel(store, run)
      await first.look()
      await sink.wait(2)
      await first.stop()
      assert.deepEqual(await store.openAlerts(), [])

      sink.answer = 200
      const second = alertService(store, [webhookTo(sink)])
      await second.look()
      await db.later(60_000)
      await second.look()
      await sink.wait(3)
      assert.deepEqual(toldTo(sink), ['raised dead', 'resolved dead', 'resolved dead'])
      await until(async () => {
        await db.later(60_000)
        await second.look()
        const { told } = (await store.recentAlerts(1))[0]!
        return Object.values(told).every(({ endedAt }) => endedAt !== null)
      })
      await second.stop()
    })

    test('what one channel took the others still get', async () => {
      await using db = await engine.fresh()
      await using hook = await httpSink()
      await using slack = await httpSink()
      slack.answer = 500
      const store = await db.open()
      await startCrawl(store, 1)
      await db.later(25 * HOUR)
      const channels = [webhookTo(hook), slackChannel({ url: slack.url, ...LOCAL })]
      const rules = rulesTo('webhook', 'slack').map((rule) => ({ ...rule, repeatMs: null }))
      const one = alertService(store, channels, { rules, clock: hasty })
      await one.look()
      await Promise.all([hook.wait(1), slack.wait(5)])
      slack.answer = 200
      await until(async () => {
        await db.later(60_000)
        await one.look()
        return slack.all.length > 5
      })
      assert.deepEqual(toldTo(hook), ['raised dead'])
      await one.stop()
    })

    test('more than ten of a kind at once are one message', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      for (let n = 0; n < 11; n++) await startCrawl(store, 1, { source: `s${n}` })
      await db.later(25 * HOUR)
      const one = alertService(store, [webhookTo(sink)])
      one.start()
      await one.finish()
      const [{ body }] = sink.all as [any]
      assert.equal(sink.all.length, 1)
      assert.equal(body.headline, '11 dead runs')
      assert.match(body.alert.because, /^s\d+: .*; s\d+: .* and 8 more$/)
      assert.equal(body.alert.command, 'unstuck alerts list')
      assert.equal(body.causes.length, 11)
      assert.ok((await store.openAlerts()).every(({ lastSentAt }) => lastSentAt !== null))
    })
  })
}

test('a parked target is not forgotten because many runs failed after it', async () => {
  await using db = await sqliteEngine.fresh()
  const store = await db.open()
  // Long, because it claims a hundred times without ever beating.
  const worker = await hire(store, { source: 'a', leaseMs: 3_600_000 })
  const run = await parkOne(store, 'rare')
  const one = alertService(store, [])
  await one.look()
  for (let n = 0; n < 101; n++) await parkOne(store, 'a', worker)
  // As if more sources had failed since than are looked at.
  const many = { ...store, lastFailed: async () => (await store.lastFailed()).slice(0, 1) }
  const other = alertService(many, [])
  for (const service of [one, other]) await service.look()
  const open = await store.openAlerts()
  assert.equal(open.length, 2)
  assert.ok(open.some((alert) => alert.run === run))
  await startCrawl(store, 1, { source: 'rare' })
  await other.look()
  assert.equal((await store.openAlerts()).length, 1)
})
