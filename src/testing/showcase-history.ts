import { TRUSTED_OBSERVER } from '../core/decide/liveness.ts'
import { newId, shortId, type RunId, type TargetId } from '../core/model/id.ts'
import { classifyRuns, cleanRuns } from '../core/recovery/clean.ts'
import { recover } from '../core/recovery/recover.ts'
import { cancel, revert } from '../operator/actions.ts'
import { operatorContext, beginOne } from './fixtures.ts'
import type { SimulatedWorker, Simulation } from './showcase-simulation.ts'
import { ALERT_STORE } from '../features/alerts/store/store.ts'
import { ACCESS_STORE } from '../features/access/store/store.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

export type Sources = Record<
  | 'tenders'
  | 'yellow'
  | 'courses'
  | 'registers'
  | 'hotels'
  | 'jobs'
  | 'property'
  | 'flights'
  | 'reviews'
  | 'news',
  string
>

export function nameSources(simulation: Simulation): Sources {
  return {
    tenders: simulation.sourceName('tenders-eu'),
    yellow: simulation.sourceName('yellow-pages'),
    courses: simulation.sourceName('university-courses'),
    registers: simulation.sourceName('company-registers'),
    hotels: simulation.sourceName('hotel-prices'),
    jobs: simulation.sourceName('job-board'),
    property: simulation.sourceName('property-listings'),
    flights: simulation.sourceName('flight-fares'),
    reviews: simulation.sourceName('product-reviews'),
    news: simulation.sourceName('news-archive'),
  }
}

export type PastRuns = {
  readonly succeeded: RunId
  readonly cleaned: RunId
  readonly dead: RunId
  readonly reverted: RunId
  readonly failed: RunId
  readonly stuckTarget: TargetId
}

/** Four nights that mostly went well, as the audit trail and the list of runs remember them. */
export async function createPastRuns(simulation: Simulation, sources: Sources): Promise<PastRuns> {
  const { store } = simulation
  const ada = operatorContext(store, simulation.text('ada'))

  const cleaned = await createDeadRun(simulation, sources.jobs)
  let [succeeded, dead] = ['', '']
  const nightly = [sources.tenders, sources.courses, sources.hotels]
  for (let night = 4; night >= 1; night--) {
    for (const source of nightly) {
      const run = await simulation.enqueue(source, 6)
      if (source === sources.tenders) succeeded = run
      const simulated = await simulation.addWorker(source, 'killed', 'scraper-01')
      await simulation.workOnce(simulated)
      await store.takeSample()
      await simulation.advance(11 * MINUTE_MS)
      await simulation.workUntilDone(simulated)
      await store.takeSample()
    }
    if (night === 4) await crashAndRecover(simulation, sources.yellow)
    if (night === 3) {
      const found = await classifyRuns(ada)
      await cleanRuns(
        ada,
        found.dead.filter(({ run }) => run.id === cleaned),
      )
    }
    if (night === 2) dead = await createDeadRun(simulation, sources.jobs)
    await simulation.advance(23 * HOUR_MS)
  }
  const reverted = await cancelAndRevert(simulation, sources.reviews)
  const { failed, stuckTarget } = await createFailedRun(simulation, sources.flights)
  await exhaustRestarts(simulation, sources.news)
  return { succeeded, cleaned, dead, reverted, failed, stuckTarget }
}

/** The rules by which people were told. */
const ALERT_OWNER = 'showcase'

/** What people were told, and what they did over HTTP. */
export async function createAlerts(
  simulation: Simulation,
  sources: Sources,
  runs: AlertedRuns,
): Promise<void> {
  const { store } = simulation
  for (const [rule, source, run] of [
    ['dead', sources.jobs, runs.dead],
    ['silent', sources.courses, runs.stalled],
    ['gave-up', sources.news, null],
  ] as const) {
    const about = run === null ? `logs "${source}"` : `show ${shortId(run)}`
    await (
      await store.extend(ALERT_STORE)
    ).raiseAlert({
      cause: `${rule} ${run ?? source}`,
      owner: ALERT_OWNER,
      rule,
      source,
      run,
      because: simulation.text(`${rule}: not handled yet`),
      command: `unstuck ${about}`,
    })
  }
  const caller = { actor: simulation.text('ben (operator)'), address: '10.0.0.7', plan: null }
  const call = `POST /api/runs/${runs.reverted}`
  const selection = { because: simulation.text('wrong window, sorry') }
  const done = simulation.text('Run is cancelled; its data is kept.')
  const cancelled = { selection, status: 200, result: done }
  const access = await store.extend(ACCESS_STORE)
  await access.recordOperation({ ...caller, call: `${call}/cancel`, ...cancelled })
  const refused = { selection: {}, status: 409, result: 'It had changed meanwhile.' }
  await access.recordOperation({ ...caller, call: `${call}/revert`, ...refused })
}

type AlertedRuns = { readonly dead: RunId; readonly stalled: RunId; readonly reverted: RunId }

/** Its worker died before the first page, and no other continued it. */
async function createDeadRun(simulation: Simulation, source: string): Promise<RunId> {
  const run = await simulation.enqueue(source, 40, ['berlin', 'hamburg'])
  const simulated = await simulation.addWorker(source, 'killed', 'scraper-02')
  await simulation.claim(simulated)
  await simulation.advance(2 * MINUTE_MS)
  await recoverLostWorker(simulation, `worker ${shortId(newId())}`, simulated)
  return run
}

async function recoverLostWorker(
  simulation: Simulation,
  actor: string,
  lostWorker: SimulatedWorker,
): Promise<void> {
  await recover(operatorContext(simulation.store, actor), {
    observer: TRUSTED_OBSERVER,
    sources: [lostWorker.source],
  })
  lostWorker.claims = []
  await simulation.retire(lostWorker)
}

async function crashAndRecover(simulation: Simulation, source: string): Promise<void> {
  await simulation.enqueue(source, 24, ['bavaria', 'saxony', 'hesse'])
  for (let loss = 1; loss <= 2; loss++) {
    const simulated = await simulation.addWorker(source, 'killed', 'scraper-01')
    await simulation.workOnce(simulated)
    await simulation.claim(simulated)
    await simulation.advance(4 * MINUTE_MS)
    await recoverLostWorker(simulation, `worker ${shortId(newId())}`, simulated)
  }
  const { store } = simulation
  const cause = `orphans of ${source}`
  const because = simulation.text(`${source} lost 4 workers within 1h`)
  const command = 'unstuck history --since 1h'
  const alert = { cause, owner: ALERT_OWNER, rule: 'orphans', source, run: null, because, command }
  await (await store.extend(ALERT_STORE)).raiseAlert(alert)
  await (
    await store.extend(ALERT_STORE)
  ).markDelivered({ causes: [cause], destination: 'slack', event: 'sent' })
  const simulated = await simulation.addWorker(source, 'killed', 'scraper-02')
  await simulation.workUntilDone(simulated)
  await simulation.advance(10 * MINUTE_MS)
  await (await store.extend(ALERT_STORE)).resolveAlert({ ...alert, lastSeenAt: await store.now() })
}

async function cancelAndRevert(simulation: Simulation, source: string): Promise<RunId> {
  const ben = {
    store: simulation.store,
    actor: simulation.text('ben (operator) via http from 10.0.0.7'),
  }
  const run = await simulation.enqueue(source, 10)
  const simulated = await simulation.addWorker(source, 'killed', 'scraper-01')
  await simulation.workOnce(simulated)
  await simulation.retire(simulated)
  await cancel(ben, run, simulation.text('wrong window, sorry'))
  await simulation.advance(3 * MINUTE_MS)
  await revert(ben, run)
  await simulation.workUntilDone(await simulation.addWorker(source, 'killed', 'scraper-01'))
  return run
}

/** Half of its targets fail, one is held since its worker was lost, and the run is over. */
async function createFailedRun(
  simulation: Simulation,
  source: string,
): Promise<{ failed: RunId; stuckTarget: TargetId }> {
  const failed = await simulation.enqueue(source, 60, ['short-haul', 'long-haul'], {
    onCrash: 'hold',
  })
  const lostWorker = await simulation.addWorker(source, 'killed', 'scraper-02', 1)
  await simulation.workOnce(lostWorker)
  await simulation.claim(lostWorker)
  const stuckTarget = lostWorker.claims[0]!.target
  await simulation.advance(5 * MINUTE_MS)
  await recoverLostWorker(simulation, simulation.text('ada'), lostWorker)
  const simulated = await simulation.addWorker(source, 'killed', 'scraper-02', 12)
  simulated.failureRate = 0.5
  await simulation.workUntilDone(simulated)
  await simulation.advance(4 * HOUR_MS)
  return { failed, stuckTarget }
}

/** A command that was started again and again until its supervisor gave up. */
async function exhaustRestarts(simulation: Simulation, source: string): Promise<void> {
  const { store } = simulation
  const simulated = await simulation.addWorker(source, 'killed', 'scraper-01')
  await store.lockSource({
    source,
    worker: simulated.worker,
    killTimeoutMs: 30_000,
    processTag: newId(),
  })
  const claimed = await beginOne(store, simulated.worker, { source })
  const error = simulation.text('exit code 1: ModuleNotFoundError: No module named "selectolax"')
  await store.fail([{ ...claimed, error, becomes: 'failed' }])
  await store.settle()
  const gaveUp = simulation.text('it failed 5 times within 15 min: exit code 1')
  await store.unlockSource({ source, worker: simulated.worker, gaveUp })
  await simulation.retire(simulated)
}
