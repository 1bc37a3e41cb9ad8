import { claim, claimOne, savePage } from '../../src/testing/fixtures.ts'
import { HOUR, type Fixture, type Situations } from './situation.ts'

/** Alerts, and what became of their cause while no process checked the rules. */

/** Four workers die one after the other, and a fifth finishes what they left. */
const loseFourWorkers = async (the: Fixture): Promise<void> => {
  await the.crawl(await the.deadWorker())
  for (let lost = 1; lost <= 4; lost++) {
    if (lost > 1) await savePage(the.store, await claimOne(the.store, await the.deadWorker()))
    await the.cli('recover', '--yes')
  }
  await finish(the)
}

const finish = async (the: Fixture): Promise<void> => {
  const worker = await the.liveWorker()
  await the.store.finish(await claim(the.store, worker, 2))
  await the.stop(worker)
}

export const ALERTS: Situations = {
  'an interrupted run that was continued after its alert': {
    severity: 'ok',
    check: { shop: 'start' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.stop(worker)
      await the.advance(HOUR)
    },
    afterAlerts: finish,
  },
  'an orphaned run that was recovered after its alert': {
    severity: 'ok',
    health: { shop: 'waiting' },
    check: { shop: 'resume' },
    arrange: async (the) => {
      await the.single(await the.deadWorker())
      await the.advance(HOUR)
    },
    afterAlerts: (the) => the.cli('recover', '--yes'),
  },
  'a parked target that was acknowledged after its alert': {
    severity: 'ok',
    health: { shop: 'healthy' },
    check: { shop: 'wait' },
    arrange: async (the) => {
      await the.crawl(await the.liveWorker())
      await the.parkOne()
    },
    afterAlerts: (the) => the.cli('acknowledge', '--all', '--yes'),
  },
  'a failed run with parked targets, and a newer run that succeeded after its alert': {
    severity: 'ok',
    check: { shop: 'start' },
    arrange: (the) => the.ended({ parked: 1, done: 1 }),
    afterAlerts: (the) => the.ended({ done: 1 }),
  },
  'a command that was given up and acknowledged after its alert': {
    severity: 'ok',
    check: { shop: 'start' },
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.lock(worker)
      await the.execution(worker, await the.single(worker))
      await the.fail(worker)
      await the.store.unlockSource({ source: 'shop', worker, gaveUp: 'five crashes in a minute' })
    },
    afterAlerts: (the) => the.cli('acknowledge', '--all', '--yes'),
  },
  'four lost workers within an hour': {
    severity: 'attention',
    check: { shop: 'start' },
    alerts: ['orphans'],
    attention: { 'shop: alert orphans': 'unstuck history --since=1h' },
    arrange: loseFourWorkers,
  },
  'four lost workers, more than an hour ago': {
    severity: 'ok',
    check: { shop: 'start' },
    arrange: loseFourWorkers,
    afterAlerts: (the) => the.advance(2 * HOUR),
  },
}
