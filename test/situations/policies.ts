import { claimOne, enqueueCrawl } from '../../src/testing/fixtures.ts'
import { HOUR, MINUTE, type Situations } from './situation.ts'

/** Runs that a policy of the config is about, which is newer than the one that is stored with the run. */
export const POLICIES: Situations = {
  'a run longer than the maxDuration of the config': {
    severity: 'stuck',
    health: { shop: 'stalled' },
    check: { shop: 'wait' },
    verdicts: ['alert shop'],
    alerts: ['overrun'],
    attention: { 'shop: stalled': 'unstuck explain ID' },
    config: `policies: { shop: { maxDuration: '1h', maxSilence: '9h' } }`,
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.advance(2 * HOUR, worker)
    },
  },
  'a run that the config allows to be silent': {
    severity: 'ok',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    config: `policies: { shop: { maxSilence: '9h' } }`,
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.advance(HOUR, worker)
    },
  },
  'a stalled crawl that the config stops': {
    severity: 'stuck',
    health: { shop: 'stalled' },
    check: { shop: 'wait' },
    verdicts: ['alert shop', 'resume shop'],
    alerts: ['silent'],
    attention: { 'shop: stalled': 'unstuck explain ID' },
    config: `policies: { shop: { onStalled: 'resume' } }`,
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.advance(16 * MINUTE, worker)
    },
  },
  'a run with one target that the config fails when it stalls': {
    severity: 'stuck',
    health: { shop: 'stalled' },
    check: { shop: 'wait' },
    verdicts: ['fail shop'],
    alerts: ['silent'],
    attention: { 'shop: stalled': 'unstuck explain ID' },
    config: `policies: { shop: { onStalled: 'fail' } }`,
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.single(worker)
      await the.advance(16 * MINUTE, worker)
    },
  },
  'a killed worker whose run the config fails': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'clean' },
    verdicts: ['fail shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    config: `policies: { shop: { onCrash: 'fail' } }`,
    arrange: async (the) => the.single(await the.deadWorker()),
  },
  'a killed worker whose target the config holds': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['hold shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    config: `policies: { shop: { onCrash: 'hold' } }`,
    arrange: async (the) => the.crawl(await the.deadWorker()),
  },
  'a killed worker whose last target the config holds': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'clean' },
    verdicts: ['hold shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    unsaid: /continues|take.? it up/,
    config: `policies: { shop: { onCrash: 'hold' } }`,
    arrange: async (the) => the.crawl(await the.deadWorker(), { targets: 1 }),
  },
  'a killed worker whose last target the config fails': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'clean' },
    verdicts: ['fail shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    unsaid: /continues|take.? it up/,
    config: `policies: { shop: { onCrash: 'fail' } }`,
    arrange: async (the) => the.crawl(await the.deadWorker(), { targets: 1 }),
  },
  'a run that is dead by the age of the config': {
    severity: 'stuck',
    health: { shop: 'dead' },
    check: { shop: 'clean' },
    verdicts: ['abandon shop'],
    alerts: ['dead'],
    attention: { 'shop: dead': 'unstuck clean ID' },
    config: `policies: { shop: { abandonAfter: '13h' } }`,
    arrange: async (the) => {
      await the.interrupted({ pages: 0 })
      await the.advance(14 * HOUR)
    },
  },
  'an old run without progress that the config keeps for longer': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'start' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck explain ID' },
    config: `policies: { shop: { abandonAfter: '9d' } }`,
    arrange: async (the) => {
      await the.interrupted({ pages: 0 })
      await the.advance(25 * HOUR)
    },
  },
  'a target that takes its workers down, and the config parks it': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'start' },
    verdicts: ['park shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    config: `policies: { shop: { maxCrashes: 1 } }`,
    arrange: async (the) => {
      await enqueueCrawl(the.store, 2)
      await claimOne(the.store, await the.deadWorker(), { isIdle: true, singleSlot: true })
    },
  },
  'a target that is silent for longer than its group may be': {
    severity: 'attention',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    verdicts: ['resume shop'],
    attention: { 'shop: a stalled worker holds 1 target': 'unstuck workers' },
    config: `policies: { shop: { groups: { CA: { maxSilence: '5m', onStalled: 'resume' } } } }`,
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await enqueueCrawl(the.store, [{ key: 'a', group: 'CA' }])
      await claimOne(the.store, worker)
      await the.advance(6 * MINUTE, worker)
    },
  },
  'a run without a worker for longer than staleAfter': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'clean' },
    verdicts: ['fail shop'],
    alerts: ['silent'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    config: `policies: { shop: { staleAfter: '30m', onStale: 'fail' } }`,
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.single(worker)
      await the.release(worker)
      await the.store.retireWorker(worker)
      await the.advance(31 * MINUTE)
    },
  },
  'a run that a longer staleAfter keeps': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck explain ID' },
    config: `policies: { shop: { staleAfter: '2h', onStale: 'fail' } }`,
    arrange: async (the) => {
      await the.interrupted()
      await the.advance(31 * MINUTE)
    },
  },
}
