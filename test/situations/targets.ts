import { ACKNOWLEDGE_STORE } from '../../src/features/acknowledge/store/store.ts'
import { claim, enqueueCrawl } from '../../src/testing/fixtures.ts'
import { HOUR, type Situations } from './situation.ts'

/** Targets and runs that failed, are parked or stuck, and the same once they are acknowledged. */
export const TARGETS: Situations = {
  'a parked target in a healthy run': {
    severity: 'attention',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    alerts: ['parked'],
    attention: { 'shop: 1 target parked': 'unstuck unpark --run=ID' },
    arrange: async (the) => {
      await the.crawl(await the.liveWorker())
      await the.parkOne()
    },
  },
  'a parked target that is acknowledged': {
    severity: 'ok',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      await the.crawl(await the.liveWorker())
      await the.parkOne()
      await the.cli('acknowledge', '--all', '--yes')
    },
  },
  'a target stuck in a healthy run': {
    severity: 'attention',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    attention: { 'shop: 1 target stuck': 'unstuck unpark --run=ID' },
    config: `policies: { shop: { onCrash: 'hold' } }`,
    arrange: async (the) => {
      await the.crawl(await the.deadWorker())
      const worker = await the.liveWorker()
      await claim(the.store, worker)
      await the.cli('recover', '--yes')
    },
  },
  'a run that ended with a failed target': {
    severity: 'attention',
    check: { shop: 'start' },
    attention: { 'shop: 1 target failed': 'unstuck show ID' },
    arrange: (the) => the.ended({ failed: 1 }),
  },
  'a run that ended with one of its targets failed': {
    severity: 'attention',
    check: { shop: 'start' },
    attention: { 'shop: 1 target failed': 'unstuck show ID' },
    arrange: (the) => the.ended({ failed: 1, done: 1 }),
  },
  'a run that ended with failed and parked targets': {
    severity: 'attention',
    check: { shop: 'start' },
    alerts: ['parked'],
    attention: { 'shop: 2 targets failed, 1 parked': 'unstuck show ID' },
    arrange: (the) => the.ended({ failed: 2, parked: 1 }),
  },
  'a failed run that is acknowledged': {
    severity: 'ok',
    check: { shop: 'start' },
    arrange: async (the) => {
      await the.ended({ failed: 2 })
      await the.cli('acknowledge', '--all', '--yes')
    },
  },
  'a failed run of which one target is acknowledged': {
    severity: 'attention',
    check: { shop: 'start' },
    attention: { 'shop: 1 target failed': 'unstuck show ID' },
    arrange: async (the) => {
      const run = await the.ended({ failed: 2 })
      const { items } = await the.store.targets(run, { limit: 1 })
      await the.cli('acknowledge', items[0]!.id)
    },
  },
  'a run of which one failed target is behind hundreds that are acknowledged': {
    severity: 'attention',
    check: { shop: 'start' },
    attention: { 'shop: 1 target failed': 'unstuck show ID' },
    arrange: async (the) => {
      const run = await the.ended({ failed: 600 })
      const { items } = await the.store.targets(run, { limit: 599 })
      const extension = await the.store.extend(ACKNOWLEDGE_STORE)
      const targets = items.map(({ id }) => id)
      const audit = { actor: 'the tests', because: 'the site is gone' }
      await extension.acknowledge({ run, targets, undo: false, dryRun: false, ...audit })
    },
  },
  'a run that recovery failed as a whole': {
    severity: 'attention',
    check: { shop: 'start' },
    attention: { 'shop: the run failed': 'unstuck show ID' },
    config: `policies: { shop: { staleAfter: '30m', onStale: 'fail' } }`,
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.release(worker)
      await the.store.retireWorker(worker)
      await the.advance(HOUR)
      await the.cli('recover', '--yes')
    },
  },
  'an acknowledgement that was undone': {
    severity: 'attention',
    check: { shop: 'start' },
    attention: { 'shop: 2 targets failed': 'unstuck show ID' },
    arrange: async (the) => {
      const run = await the.ended({ failed: 2 })
      await the.cli('acknowledge', run)
      await the.cli('acknowledge', run, '--undo')
    },
  },
  'a failed run, and a newer one that succeeded': {
    severity: 'ok',
    check: { shop: 'start' },
    arrange: async (the) => {
      await the.ended({ failed: 1 })
      await the.ended({ done: 1 })
    },
  },
  'a failed run, and a newer one at work': {
    severity: 'ok',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      await the.ended({ failed: 1 })
      await the.crawl(await the.liveWorker())
    },
  },
  'a failed run whose targets were planned again': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck work MODULE' },
    arrange: async (the) => {
      const run = await the.ended({ failed: 1 })
      await the.cli('reset-failed', run, '--yes')
      await the.advance(HOUR)
    },
  },
  'a run that an operator cancelled': {
    severity: 'ok',
    check: { shop: 'start' },
    arrange: async (the) => {
      await the.interrupted()
      await the.cli('cancel', (await the.liveRun()).id)
    },
  },
  'a run whose failure by recovery was reverted': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'resume' },
    config: `policies: { shop: { onCrash: 'fail' } }`,
    arrange: async (the) => {
      const run = await the.single(await the.deadWorker())
      await the.cli('recover', '--yes')
      await the.cli('revert', run)
    },
  },
  'an orphaned run with a parked target': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['resume shop'],
    alerts: ['parked'],
    attention: {
      'shop: orphaned': 'unstuck recover',
      'shop: 1 target parked': 'unstuck unpark --run=ID',
    },
    arrange: async (the) => {
      await the.crawl(await the.deadWorker())
      await the.parkOne()
    },
  },
  'a crawl whose targets are all parked': {
    severity: 'attention',
    check: { shop: 'start' },
    alerts: ['parked'],
    attention: { 'shop: 2 targets parked': 'unstuck unpark --run=ID' },
    arrange: async (the) => {
      await enqueueCrawl(the.store, 2)
      await the.parkOne()
      await the.parkOne()
      await the.store.settle()
    },
  },
}
