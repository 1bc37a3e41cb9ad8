import { STEADY } from '../core/decide/liveness.ts'
import { newId, shortId, type RunId, type TargetId } from '../core/model/id.ts'
import { clean } from '../core/recovery/clean.ts'
import { recover } from '../core/recovery/recover.ts'
import { cancel, revert } from '../core/recovery/operator-actions.ts'
import { beginOne } from './fixtures.ts'
import type { Hand, Scene } from './showcase-scene.ts'

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

export function nameSources(scene: Scene): Sources {
  return {
    tenders: scene.name('tenders-eu'),
    yellow: scene.name('yellow-pages'),
    courses: scene.name('university-courses'),
    registers: scene.name('company-registers'),
    hotels: scene.name('hotel-prices'),
    jobs: scene.name('job-board'),
    property: scene.name('property-listings'),
    flights: scene.name('flight-fares'),
    reviews: scene.name('product-reviews'),
    news: scene.name('news-archive'),
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
export async function playHistory(scene: Scene, sources: Sources): Promise<PastRuns> {
  const { store } = scene
  const ada = { store, actor: scene.say('ada') }

  const cleaned = await leaveDead(scene, sources.jobs)
  let [succeeded, dead] = ['', '']
  const nightly = [sources.tenders, sources.courses, sources.hotels]
  for (let night = 4; night >= 1; night--) {
    for (const source of nightly) {
      const run = await scene.queue(source, 6)
      if (source === sources.tenders) succeeded = run
      const hand = await scene.hire(source, 'killed', 'scraper-01')
      await scene.work(hand)
      await store.takeSample()
      await scene.later(11 * MINUTE_MS)
      await scene.workOff(hand)
      await store.takeSample()
    }
    if (night === 4) await loseAndRecover(scene, sources.yellow)
    if (night === 3) await clean(ada, cleaned)
    if (night === 2) dead = await leaveDead(scene, sources.jobs)
    await scene.later(23 * HOUR_MS)
  }
  const reverted = await cancelByMistake(scene, sources.reviews)
  const { failed, stuckTarget } = await failAtNight(scene, sources.flights)
  await giveUp(scene, sources.news)
  return { succeeded, cleaned, dead, reverted, failed, stuckTarget }
}

/** The rules by which people were told. */
const OWNER = 'showcase'

/** What people were told, and what they did over HTTP. */
export async function tellPeople(scene: Scene, sources: Sources, runs: ToldOf): Promise<void> {
  const { store } = scene
  for (const [rule, source, run] of [
    ['dead', sources.jobs, runs.dead],
    ['silent', sources.courses, runs.stalled],
    ['gave-up', sources.news, null],
  ] as const) {
    const about = run === null ? `logs "${source}"` : `show ${shortId(run)}`
    await store.raiseAlert({
      cause: `${rule} ${run ?? source}`,
      owner: OWNER,
      rule,
      source,
      run,
      because: scene.say(`${rule}: nobody has seen to it`),
      command: `unstuck ${about}`,
    })
  }
  const caller = { actor: scene.say('ben (operator)'), address: '10.0.0.7', plan: null }
  const call = `POST /api/runs/${runs.reverted}`
  const selection = { because: scene.say('wrong window, sorry') }
  const done = scene.say('Run is cancelled; its data is kept.')
  const cancelled = { selection, status: 200, result: done }
  await store.recordOperation({ ...caller, call: `${call}/cancel`, ...cancelled })
  const refused = { selection: {}, status: 409, result: 'It had changed meanwhile.' }
  await store.recordOperation({ ...caller, call: `${call}/revert`, ...refused })
}

type ToldOf = { readonly dead: RunId; readonly stalled: RunId; readonly reverted: RunId }

/** Its worker died before the first page, and nobody came back for it. */
async function leaveDead(scene: Scene, source: string): Promise<RunId> {
  const run = await scene.queue(source, 40, ['berlin', 'hamburg'])
  const hand = await scene.hire(source, 'killed', 'scraper-02')
  await scene.claim(hand)
  await scene.later(2 * MINUTE_MS)
  await recoverAs(scene, `worker ${shortId(newId())}`, hand)
  return run
}

async function recoverAs(scene: Scene, actor: string, lost: Hand): Promise<void> {
  await recover({ store: scene.store, actor }, { judge: STEADY, sources: [lost.source] })
  lost.claims = []
  await scene.retire(lost)
}

async function loseAndRecover(scene: Scene, source: string): Promise<void> {
  await scene.queue(source, 24, ['bavaria', 'saxony', 'hesse'])
  for (let loss = 1; loss <= 2; loss++) {
    const hand = await scene.hire(source, 'killed', 'scraper-01')
    await scene.work(hand)
    await scene.claim(hand)
    await scene.later(4 * MINUTE_MS)
    await recoverAs(scene, `worker ${shortId(newId())}`, hand)
  }
  const { store } = scene
  const cause = `orphans of ${source}`
  const because = scene.say(`${source} lost 4 workers within 1h`)
  const command = 'unstuck history --since 1h'
  const alert = { cause, owner: OWNER, rule: 'orphans', source, run: null, because, command }
  await store.raiseAlert(alert)
  await store.markTold({ causes: [cause], destination: 'slack', event: 'sent' })
  const hand = await scene.hire(source, 'killed', 'scraper-02')
  await scene.workOff(hand)
  await scene.later(10 * MINUTE_MS)
  await store.resolveAlert({ ...alert, lastSeenAt: await store.now() })
}

async function cancelByMistake(scene: Scene, source: string): Promise<RunId> {
  const ben = { store: scene.store, actor: scene.say('ben (operator) via http from 10.0.0.7') }
  const run = await scene.queue(source, 10)
  const hand = await scene.hire(source, 'killed', 'scraper-01')
  await scene.work(hand)
  await scene.retire(hand)
  await cancel(ben, run, scene.say('wrong window, sorry'))
  await scene.later(3 * MINUTE_MS)
  await revert(ben, run)
  await scene.workOff(await scene.hire(source, 'killed', 'scraper-01'))
  return run
}

/** Half of its targets fail, one is held since its worker was lost, and the run is over. */
async function failAtNight(
  scene: Scene,
  source: string,
): Promise<{ failed: RunId; stuckTarget: TargetId }> {
  const failed = await scene.queue(source, 60, ['short-haul', 'long-haul'], { onCrash: 'hold' })
  const lost = await scene.hire(source, 'killed', 'scraper-02', 1)
  await scene.work(lost)
  await scene.claim(lost)
  const stuckTarget = lost.claims[0]!.target
  await scene.later(5 * MINUTE_MS)
  await recoverAs(scene, scene.say('ada'), lost)
  const hand = await scene.hire(source, 'killed', 'scraper-02', 12)
  hand.troubled = 0.5
  await scene.workOff(hand)
  await scene.later(4 * HOUR_MS)
  return { failed, stuckTarget }
}

/** A command that was started again and again until its supervisor gave up. */
async function giveUp(scene: Scene, source: string): Promise<void> {
  const { store } = scene
  const hand = await scene.hire(source, 'killed', 'scraper-01')
  await store.holdSource({ source, worker: hand.worker, killTimeoutMs: 30_000, cookie: newId() })
  const claimed = await beginOne(store, hand.worker, { source })
  const error = scene.say('exit code 1: ModuleNotFoundError: No module named "selectolax"')
  await store.fail([{ ...claimed, error, retryInMs: null }])
  await store.settle()
  const gaveUp = scene.say('it failed 5 times within 15 min: exit code 1')
  await store.freeSource({ source, worker: hand.worker, gaveUp })
  await scene.retire(hand)
}
