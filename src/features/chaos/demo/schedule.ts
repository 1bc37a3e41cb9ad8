import type { Dice } from './random.ts'
import { PAGE_MS } from './site.ts'

/** What is done to the workers, and at which share of the pages. */
export type Act = { readonly kind: 'kill' | 'deploy' | 'zombie'; readonly at: number }

const START_MS = 2_000
const DEPLOY_MS = 4_000
/** A lease, the takeover, the refusal. */
const ZOMBIE_MS = 8_000
const KILL_MS = 1_500
/** A worker that is killed more often than this is started again with a pause. */
const LIFE_MS = 6_000
const PACE_MAX = 5

export type Size = {
  readonly pages: number
  readonly targets: number
  readonly workers: number
  readonly kills: number
}

/** How long the crawl takes at a pace, roughly. */
export function expectedMs({ pages, targets, workers }: Size, pace: number): number {
  return START_MS + (pages * PAGE_MS * pace) / Math.min(workers, targets)
}

/** How much slower the site must be so that there is time for every act: 1 for a crawl that is long enough. */
export function paceFor(size: Size): number {
  const needed = size.kills * Math.max(KILL_MS, LIFE_MS / size.workers) + DEPLOY_MS + ZOMBIE_MS
  return Math.min(PACE_MAX, Math.max(1, needed / (expectedMs(size, 1) - START_MS)))
}

/** Kills all along, with a deploy and a zombie among them. */
export function makeSchedule(kills: number, dice: Dice): Act[] {
  const acts: Act[] = Array.from({ length: kills }, (_, n) => ({
    kind: 'kill',
    at: 0.02 + (0.82 * (n + dice.next())) / kills,
  }))
  acts.push({ kind: 'deploy', at: 0.38 }, { kind: 'zombie', at: 0.55 })
  return acts.sort((a, b) => a.at - b.at)
}
