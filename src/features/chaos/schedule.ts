import { seededFraction } from './random.ts'

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
