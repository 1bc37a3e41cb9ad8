import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DEFAULT_REPEAT_MS } from './rule.ts'
import { StoreUnavailableError } from '../../core/model/errors.ts'
import { shortId } from '../../core/model/id.ts'
import { emailChannel, slackChannel } from './channels.ts'
import {
  makeAlertService,
  ALLOW_LOCAL,
  receivedAlerts,
  waitUntil,
  webhookTo,
} from '../../testing/alert-test-service.ts'
import {
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  savePage,
  enqueueCrawl,
  enqueueInterrupted,
} from '../../testing/fixtures.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { httpSink, mailSink } from '../../testing/test-receivers.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import { ALERT_STORE } from './store/store.ts'

const HOUR = 3_600_000
/** Waits for nothing, so that tries follow each other at once; and keeps how long it would have waited. */
const instantClock = (waits: number[] = []): Clock => ({
  ...REAL_CLOCK,
  random: () => 0.5,
  sleep: async (ms) => void waits.push(ms),
})

/** Time does not pass: a wait ends only when it is woken. */
const STOPPED_CLOCK: Clock = {
  ...REAL_CLOCK,
  sleep: async (_, wake) => {
    if (!wake?.aborted) await new Promise((resolve) => wake?.addEventListener('abort', resolve))
  },
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(`alerts on ${engine.name}`, () => {
    test('a cause is notified once, again after the repeat time, and when resolved; a restart repeats nothing', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      const run = await enqueueInterrupted(store, 1)
      const first = makeAlertService(store, [webhookTo(sink)])
      await first.check()
      await db.advanceClock(25 * HOUR)
      await first.check()

      const [{ body }] = (await sink.wait(1)) as [any]
      assert.equal(body.headline, `dead run ${shortId(run)} of shop`)
      assert.match(body.alert.because, /^no worker has it, 25 h old, no progress/)
      assert.equal(body.alert.command, `unstuck clean ${shortId(run)}`)
      assert.equal(body.link, `https://unstuck.example/ops/runs/${run}`)
      await waitUntil(
        async () =>
          (await (await store.extend(ALERT_STORE)).listAlerts({ open: true }))[0]!.lastSentAt !==
          null,
      )
      await first.check()
      await first.stop()

      const second = makeAlertService(await db.open(), [webhookTo(sink)])
      await db.advanceClock(HOUR)
      await second.check()
      assert.deepEqual(receivedAlerts(sink), ['raised dead'])
      await db.advanceClock(DEFAULT_REPEAT_MS - HOUR)
      await second.check()
      await sink.wait(2)
      await store.moveRun({
        run,
        to: 'cancelled',
        action: 'cancel',
        actor: 'a person',
        because: 'enough',
        evidence: null,
        expected: {},
      })
      await waitUntil(async () => {
        await second.check()
        return sink.received.length > 2
      })
      await second.check()
      assert.deepEqual(receivedAlerts(sink), ['raised dead', 'repeated dead', 'resolved dead'])
      assert.equal(new Set(sink.received.map(({ body }) => body.key)).size, 3)
      assert.deepEqual(await (await store.extend(ALERT_STORE)).listAlerts({ open: true }), [])
      await second.stop()
    })

    test('of many concurrent processes, one notifies', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
      for (let n = 0; n < 3; n++) await enqueueInterrupted(stores[0]!, 1, { source: `shop ${n}` })
      await db.advanceClock(25 * HOUR)
      const services = stores.map((store) => makeAlertService(store, [webhookTo(sink)]))
      for (const one of services) one.start()
      for (let round = 0; round < 3; round++) {
        await Promise.all(services.map((one) => one.check()))
      }
      await Promise.all(services.map((one) => one.finish()))
      assert.deepEqual(sink.received.map(({ body }) => body.alert.source).sort(), [
        'shop 0',
        'shop 1',
        'shop 2',
      ])
    })

    test('each rule finds its facts in the store', async () => {
      await using db = await engine.fresh()
      await using sink = await httpSink()
      const store = await db.open()
      // Four workers die, each with five targets in its hands; a fifth has a target that must not be tried again.
      await enqueueCrawl(store, 25)
      for (let n = 0; n < 4; n++) {
        const worker = await registerWorker(store)
        await claim(store, worker, 5)
        await recoverWorker(store, worker)
      }
      const worker = await registerWorker(store)
      const poison = await claimOne(store, worker)
      await store.fail([{ ...poison, error: 'it took down 3 workers', becomes: 'parked' }])
      // A run stands still in the hands of a worker that lives.
      const slow = await registerWorker(store, { source: 'slow' })
      const still = await enqueueCrawl(store, 1, {
        source: 'slow',
        policy: { maxSilenceMs: 300_000 },
      })
      const { claimId } = await savePage(store, await claimOne(store, slow, { source: 'slow' }))
      // A supervisor gave up.
      await store.lockSource({ source: 'feed', worker, killTimeoutMs: 1, processTag: 'c' })
      await store.unlockSource({ source: 'feed', worker, gaveUp: 'started again 5 times' })
      await db.advanceClock(10 * 60_000)
      await store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
      await store.heartbeat({ worker: slow, claimIds: [claimId], loopLagMs: 0 })

      const one = makeAlertService(store, [webhookTo(sink)])
      one.start()
      await one.finish()
      assert.deepEqual(receivedAlerts(sink).sort(), [
        'raised gave-up',
        'raised orphans',
        'raised parked',
        'raised silent',
      ])
      const open = new Map(
        (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).map((alert) => [
          alert.rule,
          alert,
        ]),
      )
      assert.match(open.get('orphans')!.because, /^runs lost a worker 4 times within 60 min/)
      assert.equal(open.get('parked')!.because, '1 target parked: it took down 3 workers')
      assert.equal(open.get('gave-up')!.because, 'started again 5 times')
      assert.equal(open.get('silent')!.run, still)
      await one.stop()
    })
  })
}

describe('channels', { concurrency: true }, () => {
  test('a failing channel does not delay others, is logged once, and gets open alerts when it recovers', async () => {
    await using db = await sqliteEngine.fresh()
    await using hook = await httpSink()
    await using slack = await httpSink()
    await using mail = await mailSink()
    slack.reply = 500
    const store = await db.open()
    await enqueueInterrupted(store, 1, { source: 'a' })
    await enqueueInterrupted(store, 1, { source: 'b' })
    await db.advanceClock(25 * HOUR)
    const [logs, waits]: [string[], number[]] = [[], []]
    const box = { smtp: `smtp://127.0.0.1:${mail.port}`, from: 'a@b.c', to: ['d@e.f'] }
    const channels = [
      slackChannel({ url: `${slack.url}/canary`, ...ALLOW_LOCAL }),
      emailChannel(box),
      webhookTo(hook),
    ]
    const one = makeAlertService(store, channels, {
      clock: instantClock(waits),
      log: (text) => logs.push(text),
    })
    await one.check()

    await Promise.all([hook.wait(2), mail.wait(2)])
    // Five tries for each of the two, with growing pauses; then it was given up.
    await slack.wait(10)
    assert.deepEqual(waits.slice(0, 4), [1_000, 5_000, 30_000, 120_000])
    assert.deepEqual(logs, [
      'alerts: slack did not take a message: it answered 500. It is tried again',
    ])
    slack.reply = 200
    await enqueueInterrupted(store, 1, { source: 'c' })
    await db.advanceClock(25 * HOUR)
    await one.check()
    await waitUntil(() => logs.at(-1) === 'alerts: slack takes messages again')
    await one.stop()
    assert.doesNotMatch(logs.join(), /canary|127\.0\.0\.1/)
  })

  test('an undelivered alert stays undelivered, and the next process sends it', async () => {
    await using db = await sqliteEngine.fresh()
    await using sink = await httpSink()
    sink.reply = 'hang'
    const store = await db.open()
    await enqueueInterrupted(store, 1)
    await db.advanceClock(25 * HOUR)
    const logs: string[] = []
    const log = (line: string) => void logs.push(line)
    const first = makeAlertService(store, [webhookTo(sink)], { log, clock: STOPPED_CLOCK })
    first.start()
    await first.check()
    await sink.wait(1)
    await first.stop()
    assert.deepEqual(logs, [], 'a stop does not wait until the channel has given up')
    assert.equal(
      (await (await store.extend(ALERT_STORE)).listAlerts({ open: true }))[0]!.lastSentAt,
      null,
    )

    sink.reply = 200
    const second = makeAlertService(store, [webhookTo(sink)])
    await second.check()
    await db.advanceClock(60_000)
    await second.check()
    await sink.wait(2)
    assert.deepEqual(receivedAlerts(sink), ['raised dead', 'raised dead'])
    assert.match(sink.received[0]!.body.key, /^[0-9a-f]{32}$/)
    await second.stop()
  })

  test('an alert raised by a process without channels is sent by another, at the latest when it ends', async () => {
    await using db = await sqliteEngine.fresh()
    await using sink = await httpSink()
    const store = await db.open()
    await enqueueInterrupted(store, 1)
    await db.advanceClock(25 * HOUR)
    const idle = makeAlertService(store, [])
    await idle.check()
    const able = makeAlertService(await db.open(), [webhookTo(sink)])
    able.start()
    await able.check()
    await idle.check()
    assert.deepEqual(
      [
        (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).length,
        sink.received.length,
      ],
      [1, 0],
    )
    await able.finish()
    assert.deepEqual(receivedAlerts(sink), ['raised dead'])
  })

  test('an error is logged once, and an unreachable database not at all', async () => {
    await using db = await sqliteEngine.fresh()
    const store = await db.open()
    const logs: string[] = []
    const broken = {
      ...store,
      acquireLeadership: async () => Promise.reject(new Error('disk full')),
    }
    const one = makeAlertService(broken, [], { log: (text) => logs.push(text) })
    await one.check()
    await one.check()
    assert.deepEqual(logs, ['alerts: disk full'])
    const away = makeAlertService(store, [], {
      open: async () => Promise.reject(new StoreUnavailableError('away')),
      log: (text) => logs.push(text),
    })
    await away.check()
    assert.equal(logs.length, 1)
  })
})
