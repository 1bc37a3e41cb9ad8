import { seededFraction, type Random } from './random.ts'

export const SIGNALS = [
  'SIGKILL',
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
  'SIGQUIT',
  'SIGABRT',
  'SIGSTOP',
] as const
export type Signal = (typeof SIGNALS)[number]

/** What `mix` draws from: mostly SIGKILL, which cannot be handled. SIGSTOP takes a lease each time, so it is not in it. */
const MIX: readonly Signal[] = ['SIGKILL', 'SIGKILL', 'SIGTERM', 'SIGINT']

/** One fault. Its times are shares, since durations are not known yet. */
export type Fault = {
  readonly signal: Signal
  /** `start`: while the command starts, recovers and claims. `work`: after it has saved something. */
  readonly moment: 'start' | 'work'
  /** When in that period, from 0 to 1. */
  readonly share: number
  /** Selects the process, if the fault is for one of them; from 0 to 1. */
  readonly pick: number
}

const START_SHARE = 0.2

/**
 * Yields faults without end; only the seed decides. Two in a row never fall into a start: a target whose workers die
 * again and again without saving anything is parked by its policy, and rightly.
 */
export function* makeSchedule(seed: number, signal: Signal | 'mix'): Generator<Fault> {
  let before: Fault['moment'] = 'work'
  for (let n = 0; ; n++) {
    const dice = (what: string): number => seededFraction(seed, 'chaos', n, what)
    const moment: Fault['moment'] =
      before === 'work' && dice('moment') < START_SHARE ? 'start' : 'work'
    before = moment
    yield {
      signal: signal === 'mix' ? MIX[Math.floor(dice('signal') * MIX.length)]! : signal,
      moment,
      share: dice('share'),
      pick: dice('pick'),
    }
  }
}

/** How long the command takes without kills. */
export type ReferenceTiming = {
  /** Until its first page was saved. */
  readonly startMs: number
  /** From then to its end. */
  readonly workMs: number
  readonly pages: number
}

/** Not all of the work: some must be left for the last fault. */
const WORK_SHARE = 0.8
const WITHIN_MIN_MS = 20

/**
 * Returns the longest time from the first page after a start to the kill, so that all kills fit into the work. Each copy
 * saves one page first, and then lasts half of this on average.
 */
export function defaultWithinMs({ workMs, pages }: ReferenceTiming, kills: number): number {
  const pageMs = workMs / Math.max(1, pages)
  const lifeMs = (WORK_SHARE * workMs) / kills
  return Math.round(Math.max(WITHIN_MIN_MS, pageMs, 2 * (lifeMs - pageMs)))
}

/** Returns the delay from a start, or from the first page after it. */
export function delayMsOf({ moment, share }: Fault, startMs: number, withinMs: number): number {
  return Math.round(share * (moment === 'start' ? startMs : withinMs))
}

// — The demo: the size of its crawl is known —

/** A fault, and the share of pages at which it is due. */
export type ScheduledFault = {
  readonly kind: 'kill' | 'deploy' | 'zombie'
  readonly atShare: number
}

/** Average time of a page of the demo's site at slowdown 1, including the time to save it. */
const AVERAGE_PAGE_MS = 440
const START_MS = 2_000
const DEPLOY_MS = 4_000
/** A lease, the recovery, the refused write. */
const ZOMBIE_MS = 8_000
const KILL_MS = 1_500
/** A worker that is killed more often than this is restarted with a delay. */
const MIN_LIFETIME_MS = 6_000
const SLOWDOWN_MAX = 5

export type DemoSize = {
  readonly pages: number
  readonly targets: number
  readonly workers: number
  readonly kills: number
}

/** Estimates how long the crawl takes. */
export function expectedMs({ pages, targets, workers }: DemoSize, slowdown: number): number {
  return START_MS + (pages * AVERAGE_PAGE_MS * slowdown) / Math.min(workers, targets)
}

/** Returns how much slower the site must be to leave time for every fault: 1 for a crawl that is long enough. */
export function slowdownFor(size: DemoSize): number {
  const needed =
    size.kills * Math.max(KILL_MS, MIN_LIFETIME_MS / size.workers) + DEPLOY_MS + ZOMBIE_MS
  return Math.min(SLOWDOWN_MAX, Math.max(1, needed / (expectedMs(size, 1) - START_MS)))
}

/** Spreads the kills over the crawl, with a deploy and a zombie between them. */
export function spreadFaults(kills: number, random: Random): ScheduledFault[] {
  const faults: ScheduledFault[] = Array.from({ length: kills }, (_, n) => ({
    kind: 'kill',
    atShare: 0.02 + (0.82 * (n + random.next())) / kills,
  }))
  faults.push({ kind: 'deploy', atShare: 0.38 }, { kind: 'zombie', atShare: 0.55 })
  return faults.sort((a, b) => a.atShare - b.atShare)
}
