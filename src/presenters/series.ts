import { timestampOfId, type RunId } from '../core/model/id.ts'
import type { Sample } from '../features/metrics/store/store.ts'
import type { Counts, Run } from '../core/model/run.ts'
import type { Millis } from '../core/model/time.ts'

const MINUTE_MS = 60_000
/** Lengths of a step, in minutes. */
const STEP_MINUTES = [1, 2, 5, 10, 15, 30, 60]
const POINTS_MAX = 180
/** Up to here every minute is shown. */
const SHORT_RANGE_MS = 2 * 60 * MINUTE_MS
/** Two samples further apart than this many steps, and a little, leave a gap: the time of the change is unknown. */
const GAP_STEPS = 2
const GAP_SLACK_MS = 30_000
/** An idle run is sampled once an hour; in between its counts are those of its last sample. */
const IDLE_AFTER_MS = 30 * MINUTE_MS
const IDLE_SLACK_MS = 3 * MINUTE_MS
/** The longest time that an idle run goes without a sample. */
export const IDLE_SAMPLE_GAP_MS = 60 * MINUTE_MS + IDLE_SLACK_MS

export type SeriesRange = {
  readonly since: Millis
  readonly until: Millis
  readonly stepMs: number
}

export type SeriesPoint = {
  readonly at: Millis
  /** How much of the step was measured: the first and the last one may be part of a step, or a little longer. */
  readonly measuredMs: number
  /** Done within the step; null if there is no sample around it, which is not the same as 0. */
  readonly pages: number | null
  readonly items: number | null
  readonly recoveries: number
}

/** Returns the steps from `forMs` ago until now: whole, on round times, and a limited number. */
export function seriesRange(forMs: number, now: Millis): SeriesRange {
  const fitting = STEP_MINUTES.find((minutes) => forMs / (minutes * MINUTE_MS) <= POINTS_MAX)
  const stepMs = (forMs <= SHORT_RANGE_MS ? 1 : (fitting ?? STEP_MINUTES.at(-1)!)) * MINUTE_MS
  const until = (Math.floor(now / stepMs) + 1) * stepMs
  const steps = Math.min(POINTS_MAX, Math.max(1, Math.ceil(forMs / stepMs)))
  return { since: until - steps * stepMs, until, stepMs }
}

/** A run up to this long is shown in steps of seconds: of whole minutes there would be one or two points. */
const SHORT_RUN_MS = 10 * MINUTE_MS
const SHORT_RUN_STEPS = { min: 12, max: 60, pages: 4 }

type Life = Pick<Run, 'createdAt' | 'startedAt' | 'finishedAt'>
type LifeAndCounts = Life & {
  readonly counts: Pick<Counts, 'pages' | 'itemsNew' | 'itemsUpdated'>
}

/** Returns the steps from the start of a run to its end, or until now, and at most as far back as samples are kept. */
export function runRange(run: LifeAndCounts, keptMs: number, now: Millis): SeriesRange {
  const [begin, end] = lifeOf(run, now)
  const forMs = Math.max(1_000, end - begin)
  if (forMs <= SHORT_RUN_MS) {
    const { min, max, pages } = SHORT_RUN_STEPS
    const wanted = Math.min(max, Math.max(min, run.counts.pages / pages))
    const stepMs = Math.ceil(forMs / wanted / 1_000) * 1_000
    const steps = Math.round(forMs / stepMs)
    return { since: begin, until: begin + steps * stepMs, stepMs }
  }
  const { stepMs, until } = seriesRange(Math.min(forMs, keptMs), end)
  const since = Math.max(begin, end - keptMs)
  return { since: Math.floor(since / stepMs) * stepMs, until, stepMs }
}

function lifeOf({ startedAt, createdAt, finishedAt }: Life, now: Millis): [Millis, Millis] {
  return [startedAt ?? createdAt, finishedAt ?? now]
}

/**
 * Returns what a short run did in each step. Its counts are known at its start, at each sample, and at its end or now; in
 * between they grow evenly. The last step has all that came until the end: runs do not end on whole steps.
 */
export function buildShortSeries(
  samples: readonly Sample[],
  recoveries: readonly RecoveryCount[],
  range: SeriesRange,
  run: LifeAndCounts,
  now: Millis,
): SeriesPoint[] {
  const [begin, end] = lifeOf(run, now)
  const { pages, itemsNew, itemsUpdated } = run.counts
  const marks: Mark[] = [
    { at: begin, pages: 0, items: 0 },
    ...samples.filter(({ at }) => at > begin && at < end),
    { at: Math.max(end, begin + 1), pages, items: itemsNew + itemsUpdated },
  ]
  const countAt = (at: Millis, read: (mark: Mark) => number): number => {
    const n = marks.findIndex((mark) => mark.at >= at)
    const after = marks.at(n)!
    const before = marks[n - 1]
    if (n === -1 || !before) return read(after)
    const share = (at - before.at) / (after.at - before.at)
    return Math.round(read(before) + share * (read(after) - read(before)))
  }
  const endOf = (at: Millis): Millis =>
    at + range.stepMs < range.until ? at + range.stepMs : Math.max(end, at + 1)
  return emptySteps(range, recoveries).map((step) => {
    const until = endOf(step.at)
    const added = (read: (mark: Mark) => number): number =>
      Math.max(0, countAt(until, read) - countAt(step.at, read))
    return {
      ...step,
      measuredMs: until - step.at,
      pages: added(({ pages }) => pages),
      items: added(({ items }) => items),
    }
  })
}

type Mark = { readonly at: Millis; readonly pages: number; readonly items: number }
type RecoveryCount = { readonly at: Millis; readonly count: number }

function emptySteps({ since, until, stepMs }: SeriesRange, recoveries: readonly RecoveryCount[]) {
  const steps = Array.from({ length: Math.round((until - since) / stepMs) }, (_, n) => ({
    at: since + n * stepMs,
    measuredMs: 0,
    pages: null as number | null,
    items: null as number | null,
    recoveries: 0,
  }))
  for (const { at, count } of recoveries) {
    const step = steps[Math.floor((at - since) / stepMs)]
    if (step) step.recoveries += count
  }
  return steps
}

/**
 * Returns what was done in each step, from cumulative samples in order of time. Needs those of one step before
 * the first, and for idle runs the last one within `STILL_MS` before it. A run that began between two samples
 * counts from zero; one whose counts fall (it was rewound) counts as idle. `live`: the runs that have not
 * ended, so that idle ones among them stay idle.
 */
export function buildSeries(
  samples: readonly Sample[],
  recoveries: readonly RecoveryCount[],
  range: SeriesRange,
  live: { readonly runs: ReadonlySet<RunId>; readonly now: Millis },
): SeriesPoint[] {
  const { since, stepMs } = range
  const steps = emptySteps(range, recoveries)
  const stepAt = (at: Millis) => steps[Math.floor((at - since) / stepMs)]
  /** There are samples between these times: a step without a change is 0. */
  const markSampled = (from: Millis, to: Millis): void => {
    for (let n = Math.max(0, Math.floor((from - since) / stepMs)); n < steps.length; n++) {
      const step = steps[n]!
      const middle = step.at + stepMs / 2
      if (middle > to) return
      if (middle <= from) continue
      step.pages ??= 0
      step.items ??= 0
    }
  }
  const last = new Map<RunId, LastSample>()
  const measured = new Map<RunId, { step: object; ms: number }>()
  const wasIdle = ({ sample, since }: LastSample, until: Millis): boolean =>
    sample.at - since >= IDLE_AFTER_MS - IDLE_SLACK_MS - stepMs &&
    until - sample.at <= IDLE_SAMPLE_GAP_MS + stepMs
  for (const sample of samples) {
    const seen = last.get(sample.run)
    last.set(sample.run, { sample, since: idleSince(sample, seen) })
    const before = seen?.sample ?? startingSample(sample)
    let from = before.at
    if (sample.at - from > GAP_STEPS * stepMs + GAP_SLACK_MS) {
      if (!seen || !wasIdle(seen, sample.at)) continue
      // It would have been sampled earlier if it had changed.
      from = sample.at - stepMs
    }
    markSampled(before.at, sample.at)
    // The time between two samples is unknown: the middle is close enough.
    const step = stepAt((from + sample.at) / 2)
    if (!step) continue
    const own = measured.get(sample.run)
    const ms = sample.at - from + (own?.step === step ? own.ms : 0)
    measured.set(sample.run, { step, ms })
    step.measuredMs = Math.min(stepMs, Math.max(step.measuredMs, ms))
    step.pages = (step.pages ?? 0) + Math.max(0, sample.pages - before.pages)
    step.items = (step.items ?? 0) + Math.max(0, sample.items - before.items)
  }
  for (const run of live.runs) {
    const seen = last.get(run)
    // The last minute is not sampled yet.
    if (seen && wasIdle(seen, live.now)) markSampled(seen.sample.at, live.now - MINUTE_MS)
  }
  const isIdle = ({ pages, measuredMs }: SeriesPoint) => pages !== null && measuredMs === 0
  return steps.map((step) => (isIdle(step) ? { ...step, measuredMs: stepMs } : step))
}

/** The last sample of a run, and since when its counts are unchanged. */
type LastSample = { readonly sample: Sample; readonly since: Millis }

/** For a run that is not new, the time before its first sample is unknown: it counts as idle since always. */
function idleSince(sample: Sample, seen: LastSample | undefined): Millis {
  if (!seen) return sample.at - timestampOfId(sample.run) > IDLE_AFTER_MS ? -Infinity : sample.at
  const { pages, items, done } = seen.sample
  const isSame = sample.pages === pages && sample.items === items && sample.done === done
  return isSame ? seen.since : sample.at
}

/** Before its first sample a run was at zero, since its id was created at the earliest. */
function startingSample(first: Sample): Sample {
  return { ...first, at: Math.min(first.at, timestampOfId(first.run)), pages: 0, items: 0, done: 0 }
}
