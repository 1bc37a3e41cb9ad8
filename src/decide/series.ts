import { madeAt, type RunId } from '../model/id.ts'
import type { Sample } from '../model/sample.ts'
import type { Millis } from '../model/time.ts'

const MINUTE_MS = 60_000
/** Lengths of a step, in minutes: those that people count in. */
const STEP_MINUTES = [1, 2, 5, 10, 15, 30, 60]
const POINTS_MAX = 180
/** Up to here every minute is shown. */
const SHORT_MS = 2 * 60 * MINUTE_MS
/** Two samples further apart than this many steps, and a little, leave a gap between them: nobody knows when it was done. */
const GAP_STEPS = 2
const GAP_SLACK_MS = 30_000

export type Span = { readonly since: Millis; readonly until: Millis; readonly stepMs: number }

export type Point = {
  readonly at: Millis
  /** Done within the step; null when nothing was sampled around it, which is not the same as 0. */
  readonly pages: number | null
  readonly items: number | null
  readonly recoveries: number
}

/** The steps to show for the time from `forMs` ago until now: whole ones, on round times, and not too many. */
export function spanOf(forMs: number, now: Millis): Span {
  const fitting = STEP_MINUTES.find((minutes) => forMs / (minutes * MINUTE_MS) <= POINTS_MAX)
  const stepMs = (forMs <= SHORT_MS ? 1 : (fitting ?? STEP_MINUTES.at(-1)!)) * MINUTE_MS
  const until = (Math.floor(now / stepMs) + 1) * stepMs
  const steps = Math.min(POINTS_MAX, Math.max(1, Math.ceil(forMs / stepMs)))
  return { since: until - steps * stepMs, until, stepMs }
}

/**
 * What was done in each step, from samples that only grow, in order of time: those of one step before the first are needed
 * too. A run that began between two samples counts from nothing; one that goes back (its run was rewound) counts as still.
 */
export function makeSeries(
  samples: readonly Sample[],
  recoveries: readonly { readonly at: Millis; readonly count: number }[],
  { since, until, stepMs }: Span,
): Point[] {
  const steps = Array.from({ length: Math.round((until - since) / stepMs) }, (_, n) => ({
    at: since + n * stepMs,
    pages: null as number | null,
    items: null as number | null,
    recoveries: 0,
  }))
  const stepAt = (at: Millis) => steps[Math.floor((at - since) / stepMs)]
  const last = new Map<RunId, Sample>()
  for (const sample of samples) {
    const before = last.get(sample.run) ?? beginningOf(sample)
    last.set(sample.run, sample)
    if (sample.at - before.at > GAP_STEPS * stepMs + GAP_SLACK_MS) continue
    const first = Math.max(0, Math.floor((before.at - since) / stepMs))
    for (const step of steps.slice(first, first + GAP_STEPS + 1)) {
      const middle = step.at + stepMs / 2
      if (middle <= before.at || middle > sample.at) continue
      step.pages ??= 0
      step.items ??= 0
    }
    // Between two samples it is not known when: the middle is never far off.
    const step = stepAt((before.at + sample.at) / 2)
    if (!step) continue
    step.pages = (step.pages ?? 0) + Math.max(0, sample.pages - before.pages)
    step.items = (step.items ?? 0) + Math.max(0, sample.items - before.items)
  }
  for (const { at, count } of recoveries) {
    const step = stepAt(at)
    if (step) step.recoveries += count
  }
  return steps
}

/** Before its first sample a run stood at nothing, at the earliest when its id was made. */
function beginningOf(first: Sample): Sample {
  return { ...first, at: Math.min(first.at, madeAt(first.run)), pages: 0, items: 0, done: 0 }
}
