import {
  beginOne,
  claimOne,
  enqueueCrawl,
  enqueueSingle,
  savePage,
} from '../../src/testing/fixtures.ts'
import { HOUR, MINUTE, SECOND, type Situations } from './situation.ts'

/** Runs that no worker holds: queued, interrupted, dead by age. */
export const WAITING: Situations = {
  'a queued run': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'start' },
    arrange: (the) => enqueueCrawl(the.store, 2),
  },
  'a queued run, and a worker of its source': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      await the.liveWorker()
      await enqueueCrawl(the.store, 2)
    },
  },
  'a run that has been queued for a month': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'start' },
    arrange: async (the) => {
      await enqueueCrawl(the.store, 2, { policy: { autoClean: true } })
      await the.advance(30 * 24 * HOUR)
    },
  },
  'a target that has just ended, and its run is not settled yet': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'start' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.store.finish([await beginOne(the.store, worker)])
    },
  },
  'a run interrupted just now': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'resume' },
    arrange: (the) => the.interrupted(),
  },
  'a crawl interrupted 50 s ago': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'resume' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.stop(worker)
      await the.advance(50 * SECOND)
    },
  },
  'a crawl interrupted 72 s ago that no worker continues': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck work MODULE' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.stop(worker)
      await the.advance(72 * SECOND)
    },
  },
  'a run of a program interrupted 72 s ago': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck explain ID' },
    arrange: async (the) => {
      await the.interrupted()
      await the.advance(72 * SECOND)
    },
  },
  'a run interrupted 30 s ago, beyond its maxSilence': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck explain ID' },
    config: `policies: { shop: { maxSilence: '20s' } }`,
    arrange: async (the) => {
      await the.interrupted()
      await the.advance(30 * SECOND)
    },
  },
  'a run interrupted an hour ago, and a worker of its source is present': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'resume' },
    arrange: async (the) => {
      await the.interrupted()
      await the.advance(HOUR)
      await the.liveWorker()
    },
  },
  'a run interrupted an hour ago, and only a lost worker of its source': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck explain ID' },
    arrange: async (the) => {
      await the.interrupted()
      await the.advance(HOUR)
      await the.deadWorker()
    },
  },
  'a wrapped command interrupted for an hour': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck run shop -- python scraper.py' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.execution(worker, await the.single(worker))
      await the.stop(worker)
      await the.advance(HOUR)
    },
  },
  'an orphaned run that was recovered': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'resume' },
    arrange: async (the) => {
      await the.crawl(await the.deadWorker())
      await the.cli('recover', '--yes')
    },
  },
  'a run that was retried: the new one is queued': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'start' },
    arrange: async (the) => {
      await the.single(await the.deadWorker(), { pages: 0 })
      await the.cli('recover', '--yes')
    },
  },
  'a run that is dead by age, with a lost worker': {
    severity: 'stuck',
    health: { shop: 'dead' },
    check: { shop: 'start' },
    verdicts: ['replan shop'],
    alerts: ['dead'],
    attention: { 'shop: dead': 'unstuck clean ID' },
    arrange: async (the) => {
      await the.crawl(await the.deadWorker(), { pages: 0 })
      await the.advance(25 * HOUR)
    },
  },
  'an interrupted run without progress that is dead by age': {
    severity: 'stuck',
    health: { shop: 'dead' },
    check: { shop: 'clean' },
    verdicts: ['abandon shop'],
    alerts: ['dead'],
    attention: { 'shop: dead': 'unstuck clean ID' },
    arrange: async (the) => {
      await the.interrupted({ pages: 0 })
      await the.advance(25 * HOUR)
    },
  },
  'a dead run that is cleaned automatically': {
    severity: 'stuck',
    health: { shop: 'dead' },
    check: { shop: 'clean' },
    verdicts: ['abandon shop'],
    attention: { 'shop: dead': 'unstuck clean ID' },
    arrange: async (the) => {
      await the.interrupted({ pages: 0, policy: { autoClean: true } })
      await the.advance(25 * HOUR)
    },
  },
  'an old run with progress, interrupted for a week': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck explain ID' },
    arrange: async (the) => {
      await the.interrupted({ policy: { autoClean: true } })
      await the.advance(7 * 24 * HOUR)
    },
  },
  'a dead run that was cleaned, and the cleaning reverted': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck explain ID' },
    arrange: async (the) => {
      const run = await the.interrupted({ pages: 0 })
      await the.advance(25 * HOUR)
      await the.cli('clean', '--yes')
      await the.cli('revert', run)
      await the.advance(2 * MINUTE)
    },
  },
  'a failed run that was resumed 72 s ago': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck work MODULE' },
    arrange: async (the) => {
      const run = await the.ended({ failed: 1, done: 1 })
      await the.cli('resume', run)
      await the.advance(72 * SECOND)
    },
  },
  'a run that is worked on again after an interruption': {
    severity: 'ok',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.stop(worker)
      await the.advance(HOUR)
      await claimOne(the.store, await the.liveWorker())
    },
  },
  'a Crawlee crawl that no worker continues for an hour': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    check: { shop: 'resume' },
    alerts: ['silent'],
    attention: { 'shop: interrupted': 'unstuck explain ID' },
    arrange: async (the) => {
      await the.crawlee()
      const worker = await the.liveWorker()
      await savePage(the.store, await claimOne(the.store, worker))
      await the.stop(worker)
      await the.advance(HOUR)
    },
  },
  'a run whose targets are still being planned, by a worker that was killed': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'start' },
    arrange: async (the) => {
      const run = await enqueueCrawl(the.store, 2, { planned: false })
      await the.store.claimPlanning(run, await the.deadWorker())
    },
  },
  'a run with one target that is queued, and its last one succeeded': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'start' },
    arrange: async (the) => {
      await the.ended({ done: 1 })
      await enqueueSingle(the.store)
    },
  },
}
