import type { Random } from './random.ts'
import { AVERAGE_PAGE_MS } from './site.ts'

/** What is done to the workers, and at which share of the pages. */
export type ScheduledFault = {
  readonly kind: 'kill' | 'deploy' | 'zombie'
  readonly atShare: number
}

const START_MS = 2_000
const DEPLOY_MS = 4_000
/** A lease, the takeover, the refusal. */
const ZOMBIE_MS = 8_000
const KILL_MS = 1_500
/** A worker that is killed more often than this is started again with a pause. */
const MIN_LIFETIME_MS = 6_000
const SLOWDOWN_MAX = 5

export type DemoSize = {
  readonly pages: number
  readonly targets: number
  readonly workers: number
  readonly kills: number
}

/** How long the crawl takes at a pace, roughly. */
export function expectedMs({ pages, targets, workers }: DemoSize, slowdown: number): number {
  return START_MS + (pages * AVERAGE_PAGE_MS * slowdown) / Math.min(workers, targets)
}

/** How much slower the site must be so that there is time for every act: 1 for a crawl that is long enough. */
export function slowdownFor(size: DemoSize): number {
  const needed =
    size.kills * Math.max(KILL_MS, MIN_LIFETIME_MS / size.workers) + DEPLOY_MS + ZOMBIE_MS
  return Math.min(SLOWDOWN_MAX, Math.max(1, needed / (expectedMs(size, 1) - START_MS)))
}

/** Kills all along, with a deploy and a zombie among them. */
export function makeSchedule(kills: number, random: Random): ScheduledFault[] {
  const faults: ScheduledFault[] = Array.from({ length: kills }, (_, n) => ({
    kind: 'kill',
    atShare: 0.02 + (0.82 * (n + random.next())) / kills,
  }))
  faults.push({ kind: 'deploy', atShare: 0.38 }, { kind: 'zombie', atShare: 0.55 })
  return faults.sort((a, b) => a.atShare - b.atShare)
}
