import { beginOne, savePage } from '../../src/testing/fixtures.ts'
import { HOUR, MINUTE, type Situations } from './situation.ts'

/** Wrapped commands: their source locks, what they left running, and those that were given up. */
export const COMMANDS: Situations = {
  'a wrapped command at work': {
    severity: 'ok',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.lock(worker)
      await the.execution(worker, await the.single(worker))
    },
  },
  'a wrapped command between two runs': {
    severity: 'ok',
    check: { shop: 'wait' },
    arrange: async (the) => the.lock(await the.liveWorker()),
  },
  'a command that was given up': {
    severity: 'attention',
    check: { shop: 'start' },
    alerts: ['gave-up'],
    attention: {
      'shop: 1 target failed': 'unstuck show ID',
      'shop: gave up': 'unstuck logs shop',
    },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.lock(worker)
      await the.execution(worker, await the.single(worker))
      await the.fail(worker)
      await the.store.unlockSource({ source: 'shop', worker, gaveUp: 'five crashes in a minute' })
    },
  },
  'a source lock left behind by a killed watchdog': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['resume shop'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    arrange: async (the) => {
      const worker = await the.deadWorker()
      await the.lock(worker)
      await savePage(the.store, await beginOne(the.store, worker))
    },
  },
  'processes that outlived Unstuck and its watchdog': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'wait' },
    verdicts: ['resume shop'],
    attention: {
      'shop: orphaned': 'unstuck recover',
      'shop: 1 process of an earlier copy still runs': 'unstuck recover --source=shop',
    },
    arrange: async (the) => {
      const worker = await the.deadWorker()
      await the.process(await the.lock(worker))
      await the.single(worker)
    },
  },
  'processes of an earlier copy, without a run': {
    severity: 'attention',
    check: { shop: 'wait' },
    attention: {
      'shop: 1 process of an earlier copy still runs': 'unstuck recover --source=shop',
    },
    arrange: async (the) => the.process(await the.lock(await the.deadWorker())),
  },
  'a silent copy on another host, whose command may still run': {
    severity: 'attention',
    health: { shop: 'unknown' },
    check: { shop: 'wait' },
    attention: { 'shop: unknown': 'unstuck explain ID' },
    arrange: async (the) => {
      const worker = await the.remoteWorker()
      await the.store.lockSource({
        source: 'shop',
        worker,
        killTimeoutMs: MINUTE,
        processTag: 'elsewhere',
      })
      await the.single(worker)
      await the.advance(20_000)
    },
  },
  'a copy on another host, silent for longer than its lease and kill timeout': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    check: { shop: 'resume' },
    verdicts: ['resume shop'],
    alerts: ['silent'],
    attention: { 'shop: orphaned': 'unstuck recover' },
    arrange: async (the) => {
      const worker = await the.remoteWorker()
      await the.lock(worker)
      await the.single(worker)
      await the.advance(HOUR)
    },
  },
}
