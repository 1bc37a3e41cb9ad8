import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DEFAULT_REPEAT_MS } from '../../core/model/alert-rule.ts'
import { StoreUnavailable } from '../../core/model/errors.ts'
import { shortId } from '../../core/model/id.ts'
import { emailChannel } from './email.ts'
import { slackChannel } from './slack.ts'
import { alertService, LOCAL, toldTo, until, webhookTo } from '../../testing/alert-context.ts'
import { bury, claim, claimOne, hire, save, startCrawl } from '../../testing/fixtures.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { httpSink, mailSink } from '../../testing/sinks.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'

const HOUR = 3_600_000
/** Waits for nothing, so that tries follow each other at once; and keeps how long it would have waited. */
const hasty = (waits: number[] = []): Clock => ({
  ...REAL_CLOCK,
  random: () => 0.5,
  sleep: async (ms) => void waits.push(ms),
})

/** Time does not pass: a wait ends only when it is woken. */
const STANDING_STILL: Clock = {
  ...REAL_CLOCK,
  sleep: async (_, wake) => {
    if (!wake?.aborted) await new Promise((resolve) => wake?.addEventListener('abort', resolve))
  },
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(`alerts on ${engine.name}`, () => {
    test('a cause is told once, again when it is time, and when it is over; a restart tells nothing twice', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      const run = await startCrawl(store, 1)
      const first = alertService(store, [webhookTo(sink)])
      await first.look()
      await db.later(25 * HOUR)
      await first.look()

      const [{ body }] = (await sink.wait(1)) as [any]
      assert.equal(body.headline, `dead run ${shortId(run)} of shop`)
      assert.match(body.alert.because, /^nobody works on it, 25 h old, no progress/)
      assert.equal(body.alert.command, `unstuck clean ${shortId(run)}`)
      assert.equal(body.link, `https://unstuck.example/ops/runs/${run}`)
      await until(async () => (await store.openAlerts())[0]!.lastSentAt !== null)
      await first.look()
      await first.stop()

      const second = alertService(await db.open(), [webhookTo(sink)])
      await db.later(HOUR)
      await second.look()
      assert.deepEqual(toldTo(sink), ['raised dead'])
      await db.later(DEFAULT_REPEAT_MS - HOUR)
      await second.look()
      await sink.wait(2)
      await store.moveRun({
        run,
        to: 'cancelled',
        action: 'cancel',
        actor: 'a person',
        because: 'enough',
        evidence: null,
        only: {},
      })
      await until(async () => {
        await second.look()
        return sink.all.length > 2
      })
      await second.look()
      assert.deepEqual(toldTo(sink), ['raised dead', 'repeated dead', 'resolved dead'])
      assert.equal(new Set(sink.all.map(({ body }) => body.key)).size, 3)
      assert.deepEqual(await store.openAlerts(), [])
      await second.stop()
    })

    test('of many that look at once, one tells', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
      for (let n = 0; n < 3; n++) await startCrawl(stores[0]!, 1, { source: `shop ${n}` })
      await db.later(25 * HOUR)
      const services = stores.map((store) => alertService(store, [webhookTo(sink)]))
      for (const one of services) one.start()
      for (let round = 0; round < 3; round++) {
        await Promise.all(services.map((one) => one.look()))
      }
      await Promise.all(services.map((one) => one.finish()))
      assert.deepEqual(sink.all.map(({ body }) => body.alert.source).sort(), [
        'shop 0',
        'shop 1',
        'shop 2',
      ])
    })

    test('each rule finds in the store what it asks for', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      // Four workers die, each with five targets in its hands; a fifth has a target that must not be tried again.
      await startCrawl(store, 25)
      for (let n = 0; n < 4; n++) {
        const worker = await hire(store)
        await claim(store, worker, 5)
        await bury(store, worker)
      }
      const worker = await hire(store)
      const poison = await claimOne(store, worker)
      await store.park([{ ...poison, reason: 'it took down 3 workers' }])
      // A run stands still in the hands of a worker that lives.
      const slow = await hire(store, { source: 'slow' })
      const still = await startCrawl(store, 1, {
        source: 'slow',
        policy: { maxSilenceMs: 300_000 },
      })
      const { claimId } = await save(store, await claimOne(store, slow, { source: 'slow' }))
      // A supervisor gave up.
      await store.holdSource({ source: 'feed', worker, killTimeoutMs: 1, cookie: 'c' })
      await store.freeSource({ source: 'feed', worker, gaveUp: 'started again 5 times' })
      await db.later(10 * 60_000)
      await store.beat({ worker, claimIds: [], loopLagMs: 0 })
      await store.beat({ worker: slow, claimIds: [claimId], loopLagMs: 0 })

      const one = alertService(store, [webhookTo(sink)])
      one.start()
      await one.finish()
      assert.deepEqual(toldTo(sink).sort(), [
        'raised gave-up',
        'raised orphans',
        'raised parked',
        'raised silent',
      ])
      const open = new Map((await store.openAlerts()).map((alert) => [alert.rule, alert]))
      assert.match(open.get('orphans')!.because, /^runs lost a worker 4 times within 60 min/)
      assert.equal(open.get('parked')!.because, 'one target is parked: it took down 3 workers')
      assert.equal(open.get('gave-up')!.because, 'started again 5 times')
      assert.equal(open.get('silent')!.run, still)
      await one.stop()
    })
  })
}

describe('channels', { concurrency: true }, () => {
  test('a dead channel keeps no other waiting, is said once, and gets what is open when it is back', async () => {
    await using db = await sqliteEngine.fresh()
    await using hook = await httpSink()
    await using slack = await httpSink()
    await using mail = await mailSink()
    slack.answer = 500
    const store = await db.open()
    await startCrawl(store, 1, { source: 'a' })
    await startCrawl(store, 1, { source: 'b' })
    await db.later(25 * HOUR)
    const [logs, waits]: [string[], number[]] = [[], []]
    const box = { smtp: `smtp://127.0.0.1:${mail.port}`, from: 'a@b.c', to: ['d@e.f'] }
    const channels = [
      slackChannel({ url: `${slack.url}/canary`, ...LOCAL }),
      emailChannel(box),
      webhookTo(hook),
    ]
    const one = alertService(store, channels, {
      clock: hasty(waits),
      log: (text) => logs.push(text),
    })
    await one.look()

    await Promise.all([hook.wait(2), mail.wait(2)])
    // Five tries for each of the two, with growing pauses; then it was given up.
    await slack.wait(10)
    assert.deepEqual(waits.slice(0, 4), [1_000, 5_000, 30_000, 120_000])
    assert.deepEqual(logs, [
      'alerts: slack did not take a message: it answered 500. It is tried again',
    ])
    slack.answer = 200
    await startCrawl(store, 1, { source: 'c' })
    await db.later(25 * HOUR)
    await one.look()
    await until(() => logs.at(-1) === 'alerts: slack takes messages again')
    await one.stop()
    assert.doesNotMatch(logs.join(), /canary|127\.0\.0\.1/)
  })

  test('what could not be told is kept as untold, and whoever comes next tells it', async () => {
    await using db = await sqliteEngine.fresh()
    await using sink = await httpSink()
    sink.answer = 'hang'
    const store = await db.open()
    await startCrawl(store, 1)
    await db.later(25 * HOUR)
    const logs: string[] = []
    const log = (line: string) => void logs.push(line)
    const first = alertService(store, [webhookTo(sink)], { log, clock: STANDING_STILL })
    first.start()
    await first.look()
    await sink.wait(1)
    await first.stop()
    assert.deepEqual(logs, [], 'a stop does not wait until the channel has given up')
    assert.equal((await store.openAlerts())[0]!.lastSentAt, null)

    sink.answer = 200
    const second = alertService(store, [webhookTo(sink)])
    await second.look()
    await db.later(60_000)
    await second.look()
    await sink.wait(2)
    assert.deepEqual(toldTo(sink), ['raised dead', 'raised dead'])
    assert.match(sink.all[0]!.body.key, /^[0-9a-f]{32}$/)
    await second.stop()
  })

  test('what a process without channels has raised, another tells, at the latest when it ends', async () => {
    await using db = await sqliteEngine.fresh()
    await using sink = await httpSink()
    const store = await db.open()
    await startCrawl(store, 1)
    await db.later(25 * HOUR)
    const idle = alertService(store, [])
    await idle.look()
    const able = alertService(await db.open(), [webhookTo(sink)])
    able.start()
    await able.look()
    await idle.look()
    assert.deepEqual([(await store.openAlerts()).length, sink.all.length], [1, 0])
    await able.finish()
    assert.deepEqual(toldTo(sink), ['raised dead'])
  })

  test('an error is said once and a database that is away not at all', async () => {
    await using db = await sqliteEngine.fresh()
    const store = await db.open()
    const logs: string[] = []
    const broken = { ...store, takeTurn: async () => Promise.reject(new Error('disk full')) }
    const one = alertService(broken, [], { log: (text) => logs.push(text) })
    await one.look()
    await one.look()
    assert.deepEqual(logs, ['alerts: disk full'])
    const away = alertService(store, [], {
      open: async () => Promise.reject(new StoreUnavailable('away')),
      log: (text) => logs.push(text),
    })
    await away.look()
    assert.equal(logs.length, 1)
  })
})
