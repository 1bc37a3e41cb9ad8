import {
  assertAllOk,
  beginOne,
  claim,
  claimOne,
  enqueueCrawl,
  savePage,
} from '../../src/testing/fixtures.ts'
import { HOUR, MINUTE, type Situations } from './situation.ts'

/** Runs with a worker that lives, is lost, or makes no progress. */
export const WORKERS: Situations = {
  'nothing has run': { severity: 'ok', arrange: async () => {} },
  'a healthy run': {
    severity: 'ok',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    arrange: async (the) => the.crawl(await the.liveWorker()),
  },
  'a worker without a run': {
    severity: 'ok',
    check: { shop: 'start' },
    arrange: (the) => the.liveWorker(),
  },
  'a worker killed with -9': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['resume shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    arrange: async (the) => the.crawl(await the.deadWorker()),
  },
  'a worker killed with -9 before its first page': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'start' },
    verdicts: ['replan shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    arrange: async (the) => the.crawl(await the.deadWorker(), { pages: 0 }),
  },
  'a run with one target whose worker was killed before its first page': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'start' },
    verdicts: ['retry shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    unsaid: /continues after/,
    arrange: async (the) => the.single(await the.deadWorker(), { pages: 0 }),
  },
  'a worker killed an hour ago, and no other running': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['resume shop'],
    alerts: ['silent'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    arrange: async (the) => {
      await the.crawl(await the.deadWorker())
      await the.advance(HOUR)
    },
  },
  'a silent worker on another host': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['resume shop'],
    alerts: ['silent'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    arrange: async (the) => {
      await the.crawl(await the.remoteWorker())
      await the.advance(2 * MINUTE)
    },
  },
  'a silent worker in another container of this host': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['resume shop'],
    alerts: ['silent'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    arrange: async (the) => {
      await the.crawl(await the.containerWorker())
      await the.advance(2 * MINUTE)
    },
  },
  'a worker on another host that heartbeats': {
    severity: 'ok',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    arrange: async (the) => the.crawl(await the.remoteWorker()),
  },
  'a worker on this host whose process lives and is silent': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['resume shop'],
    alerts: ['silent'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    arrange: async (the) => {
      await the.crawl(await the.liveWorker())
      await the.advance(10 * MINUTE)
    },
  },
  'a lost worker beside one that keeps the run healthy': {
    severity: 'attention',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    verdicts: ['resume shop'],
    attention: { 'shop: a lost worker holds 1 target': 'unstuck recover' },
    arrange: async (the) => {
      await the.crawl(await the.deadWorker())
      await claimOne(the.store, await the.liveWorker())
    },
  },
  'a stalled crawl': {
    severity: 'stuck',
    health: { shop: 'stalled' },
    check: { shop: 'wait' },
    verdicts: ['alert shop', 'alert shop'],
    alerts: ['silent'],
    attention: { 'shop: stalled': 'unstuck explain ID' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.advance(16 * MINUTE, worker)
    },
  },
  'a stalled run with one target': {
    severity: 'stuck',
    health: { shop: 'stalled' },
    check: { shop: 'wait' },
    verdicts: ['alert shop'],
    alerts: ['silent'],
    attention: { 'shop: stalled': 'unstuck explain ID' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.single(worker)
      await the.advance(16 * MINUTE, worker)
    },
  },
  'one stalled target in a crawl that makes progress': {
    severity: 'attention',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    verdicts: ['alert shop'],
    attention: { 'shop: a stalled worker holds 2 targets': 'unstuck workers' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await enqueueCrawl(the.store, 2)
      const [, second] = await claim(the.store, worker, 2)
      await the.advance(16 * MINUTE, worker)
      await savePage(the.store, second!)
    },
  },
  'several sources, each with another severity': {
    severity: 'stuck',
    health: { shop: 'healthy', books: 'orphaned', games: 'interrupted' },
    check: { shop: 'wait', books: 'resume', games: 'resume', music: 'start' },
    verdicts: ['resume books'],
    alerts: ['silent', 'silent'],
    attention: {
      'books: orphaned': 'unstuck recover',
      'games: interrupted': 'unstuck explain ID',
      'music: 1 target failed': 'unstuck show ID',
    },
    arrange: async (the) => {
      const shop = await the.liveWorker()
      await the.crawl(shop)
      await the.crawl(await the.deadWorker('books'), { source: 'books' })
      await the.interrupted({ source: 'games' })
      await the.ended({ failed: 1 }, 'music')
      await the.advance(10 * MINUTE, shop)
    },
  },
  'two runs that are stuck and one that is not': {
    severity: 'stuck',
    health: { shop: 'orphaned', books: 'stalled', games: 'waiting' },
    check: { shop: 'resume', books: 'wait', games: 'start' },
    verdicts: ['alert books', 'alert books', 'resume shop'],
    alerts: ['silent', 'silent'],
    attention: { 'shop: orphaned': 'unstuck recover', 'books: stalled': 'unstuck explain ID' },
    arrange: async (the) => {
      const books = await the.liveWorker('books')
      await the.crawl(await the.deadWorker())
      await the.crawl(books, { source: 'books' })
      await enqueueCrawl(the.store, 2, { source: 'games' })
      await the.advance(20 * MINUTE, books)
    },
  },
  'two workers of a crawl, both killed': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['replan shop', 'resume shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    arrange: async (the) => {
      await the.crawl(await the.deadWorker())
      await claimOne(the.store, await the.deadWorker())
    },
  },
  'a crawl that was recovered from a silent worker': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'resume' },
    unsaid: /"liveness":"silent"/,
    arrange: async (the) => {
      await the.crawl(await the.remoteWorker())
      await the.advance(2 * MINUTE)
      await the.cli('recover', '--yes')
    },
  },
  'a lost worker that holds nothing': {
    severity: 'ok',
    check: { shop: 'start' },
    arrange: (the) => the.deadWorker(),
  },
  'a worker killed between the end of its target and of its run, an hour ago': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'start' },
    unsaid: /not ended automatically|If its worker dies/,
    arrange: async (the) => {
      const worker = await the.deadWorker()
      assertAllOk(await the.store.finish([await beginOne(the.store, worker)]))
      await the.advance(HOUR)
    },
  },
  'a worker of a crawl killed between the end of its last target and of its run': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'start' },
    unsaid: /not ended automatically|If its worker dies/,
    arrange: async (the) => {
      const worker = await the.deadWorker()
      await enqueueCrawl(the.store, 1)
      assertAllOk(await the.store.finish([await claimOne(the.store, worker)]))
    },
  },
  'a database whose clock was set back by ten minutes': {
    severity: 'ok',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      await the.crawl(await the.liveWorker())
      await the.advance(-10 * MINUTE)
    },
  },
  'an outage of all workers that has just ended': {
    severity: 'ok',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      const worker = await the.remoteWorker()
      await the.crawl(worker)
      await the.advance(5 * MINUTE)
      await the.heartbeat(worker)
    },
  },
  'a Crawlee crawl whose process was killed': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['resume shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    arrange: async (the) => {
      await the.crawlee()
      await savePage(the.store, await claimOne(the.store, await the.deadWorker()))
    },
  },
}
