import { claimOne, enqueueCrawl, enqueueSingle, savePage } from '../../src/testing/fixtures.ts'
import { SOURCE_STORE } from '../../src/features/sources/store/store.ts'
import { HOUR, MINUTE, SECOND, type Situations } from './situation.ts'

/** Sources that an operator paused, and supervisors that wait for their next start. */
export const PAUSED: Situations = {
  'a queued run of a paused source': {
    severity: 'ok',
    health: { shop: 'paused' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      await enqueueCrawl(the.store, 2)
      await the.cli('pause', 'shop', '--because', 'their site is down')
    },
  },
  'a run of a paused source, interrupted for a week': {
    severity: 'ok',
    health: { shop: 'paused' },
    check: { shop: 'wait' },
    unsaid: /(program|worker) again/,
    arrange: async (the) => {
      await the.interrupted()
      await the.cli('pause', 'shop')
      await the.advance(7 * 24 * HOUR)
    },
  },
  'a crawl of a paused source that no worker has had for a quarter of an hour': {
    severity: 'ok',
    health: { shop: 'paused' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.cli('pause', 'shop', '--because', 'their site is down')
      await the.stop(worker)
      await the.advance(13 * MINUTE)
    },
  },
  'a run of a paused source without progress, a day old': {
    severity: 'ok',
    health: { shop: 'paused' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      await the.interrupted({ pages: 0, policy: { autoClean: true } })
      await the.cli('pause', 'shop')
      await the.advance(25 * HOUR)
    },
  },
  'a paused source whose worker waits for longer than maxSilence and maxDuration': {
    severity: 'ok',
    health: { shop: 'paused' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await enqueueCrawl(the.store, 2, { policy: { maxDurationMs: HOUR, onStalled: 'fail' } })
      const held = await savePage(the.store, await claimOne(the.store, worker))
      await the.cli('pause', 'shop')
      await the.store.release([held])
      await the.advance(2 * HOUR, worker)
    },
  },
  'a paused source, and a dead worker that holds a target': {
    severity: 'ok',
    health: { shop: 'paused' },
    check: { shop: 'wait' },
    verdicts: ['resume shop'],
    arrange: async (the) => {
      await the.crawl(await the.deadWorker())
      await the.cli('pause', 'shop')
    },
  },
  'a paused source, and a worker that hangs on a page in hand': {
    severity: 'stuck',
    health: { shop: 'stalled' },
    check: { shop: 'wait' },
    verdicts: ['alert shop', 'alert shop'],
    alerts: ['silent'],
    attention: { 'shop: stalled': 'unstuck explain ID' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.cli('pause', 'shop')
      await the.advance(20 * MINUTE, worker)
    },
  },
  'a run of a source that was paused for an hour, and unpaused just now': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'resume' },
    arrange: async (the) => {
      await the.interrupted()
      await the.cli('pause', 'shop')
      await the.advance(HOUR)
      await the.cli('unpause', 'shop')
      await the.advance(50 * SECOND)
    },
  },
  'a paused source whose run has ended': {
    severity: 'ok',
    check: { shop: 'wait' },
    arrange: async (the) => {
      await the.ended({ done: 1 })
      await the.cli('pause', 'shop')
    },
  },
  'a supervisor that waits for its next time': {
    severity: 'ok',
    check: { shop: 'wait' },
    arrange: async (the) => {
      await the.lock(await the.liveWorker())
      await (await the.store.extend(SOURCE_STORE)).setNextStart('shop', HOUR)
    },
  },
  'a run that was queued while its supervisor waits': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'wait' },
    unsaid: /for a worker|worker that starts|A worker holds/,
    arrange: async (the) => {
      await the.lock(await the.liveWorker())
      await (await the.store.extend(SOURCE_STORE)).setNextStart('shop', HOUR)
      await enqueueSingle(the.store)
    },
  },
  'a supervisor that waits for its first time, and its source is paused': {
    severity: 'ok',
    check: { shop: 'wait' },
    unsaid: /Nothing has run yet/,
    arrange: async (the) => {
      await the.lock(await the.liveWorker())
      await (await the.store.extend(SOURCE_STORE)).setNextStart('shop', HOUR)
      await the.cli('pause', 'shop', '--because', 'maintenance')
    },
  },
}
