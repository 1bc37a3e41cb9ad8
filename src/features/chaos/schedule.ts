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

/** What `mix` draws from: mostly the one that nobody can answer. SIGSTOP takes a lease each time, so it is asked for by name. */
const MIX: readonly Signal[] = ['SIGKILL', 'SIGKILL', 'SIGTERM', 'SIGINT']

/** One blow, before it is known how long anything takes: its times are shares. */
export type Fault = {
  readonly signal: Signal
  /** `start`: while the command starts, recovers and claims. `work`: after it has saved something. */
  readonly moment: 'start' | 'work'
  /** How far into that moment it falls, from 0 to 1. */
  readonly share: number
  /** Which of the command's processes it is for, where it is for one of them; from 0 to 1. */
  readonly pick: number
}

const START_SHARE = 0.2

/**
 * Blow after blow without end, decided by the seed alone. Two in a row never fall into a start: a command that is not
 * allowed to save anything between its deaths is given up by its policy, and rightly.
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

/** How the command goes when nobody disturbs it. */
export type ReferenceTiming = {
  /** Until its first page was saved. */
  readonly startMs: number
  /** From then to its end. */
  readonly workMs: number
  readonly pages: number
}

/** Not all of the work: the last blow must still find some. */
const WORK_SHARE = 0.8
const WITHIN_MIN_MS = 20

/**
 * How long after its first page a life may last at most, so that so many of them fit into the work. Each life saves one
 * page first, and then lasts half of this on the average.
 */
export function defaultWithinMs({ workMs, pages }: ReferenceTiming, kills: number): number {
  const pageMs = workMs / Math.max(1, pages)
  const lifeMs = (WORK_SHARE * workMs) / kills
  return Math.round(Math.max(WITHIN_MIN_MS, pageMs, 2 * (lifeMs - pageMs)))
}

/** From the start of a life, or from its first page. */
export function delayMsOf({ moment, share }: Fault, startMs: number, withinMs: number): number {
  return Math.round(share * (moment === 'start' ? startMs : withinMs))
}
