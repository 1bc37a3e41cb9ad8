import type { Millis } from '../core/model/time.ts'
import type { Pace } from './records.ts'
import { progressOf } from './format.ts'
import { countOpenTargets, type Run } from '../core/model/run.ts'
import type { RunId } from '../core/model/id.ts'
import type { Store } from '../core/store/store.ts'
import { METRICS_STORE, type Sample } from '../features/metrics/store/store.ts'

/** How far a run had come at one moment. */
export type ProgressPoint = {
  readonly at: Millis
  readonly pages: number
  readonly items: number
  readonly done: number
}

/** Over how long. */
export const PACE_WINDOW_MS = 5 * 60_000
/** Samples of a shorter time are noise. */
const SPAN_MIN_MS = 10_000

/**
 * How fast a run went within the last minutes. `marks`: by time, the last one is now. `open`: how much is left; null while
 * the total is not known. Null when there are fewer than two marks that are far enough apart.
 */
export function computePace(points: readonly ProgressPoint[], open: number | null): Pace | null {
  const last = points.at(-1)
  if (!last) return null
  const first = points.find(({ at }) => at >= last.at - PACE_WINDOW_MS)!
  const minutes = (last.at - first.at) / 60_000
  if (last.at - first.at < SPAN_MIN_MS) return null
  const grown = (read: (mark: ProgressPoint) => number): number =>
    Math.max(0, read(last) - read(first))
  return {
    pagesPerMinute: roundRate(grown(({ pages }) => pages) / minutes),
    itemsPerMinute: roundRate(grown(({ items }) => items) / minutes),
    etaSeconds: eta(
      open,
      grown(({ done }) => done),
      minutes * 60,
    ),
  }
}

/** A count varies by about its square root by chance: after one target the rest may take half as long, or twice. */
function eta(open: number | null, done: number, seconds: number): Pace['etaSeconds'] {
  if (open === null || done <= 0) return null
  const likely = (open * seconds) / done
  const doubt = 1 + 1 / Math.sqrt(done)
  return { from: Math.round(likely / doubt), to: Math.round(likely * doubt) }
}

/** Slow runs have paces below one. */
export function roundRate(rate: number): number {
  return rate >= 10 ? Math.round(rate) : Math.round(rate * 10) / 10
}

/** Samples come once a minute: until there are some, a run's own totals since its start say how fast it is. */
const EARLY_RUN_MS = 3 * 60_000

/** What was sampled of each run lately, by time. */
export type RecentSamples = ReadonlyMap<RunId, readonly Sample[]>

/** Of all runs, as far as they matter for their pace now. */
export async function recentSamples(store: Store, now: Millis): Promise<RecentSamples> {
  const metrics = await store.extend(METRICS_STORE)
  const samples = await metrics.samples({ since: now - PACE_WINDOW_MS, until: now + 1 })
  return Map.groupBy(samples, ({ run }) => run)
}

/** How fast a run goes now; null for one that is not at work, or while too little is known. */
export function paceOf(samples: RecentSamples, run: Run, now: Millis): Pace | null {
  if (run.status !== 'running') return null
  // A continued run stood still before: its pace begins with the first sample after that.
  const since = run.resumedAt ?? 0
  const own = (samples.get(run.id) ?? []).filter(({ at }) => at >= since)
  return computePace(
    [...initialMarks(samples, run, now), ...own, markOf(run, now)],
    remainingTargets(run),
  )
}

/** What is known of it besides its own samples. */
function initialMarks(samples: RecentSamples, run: Run, now: Millis): ProgressPoint[] {
  const { startedAt, resumedAt, resumes } = run
  if (startedAt === null) return []
  if (resumes === 0 && now - startedAt < EARLY_RUN_MS) {
    return [{ at: startedAt, pages: 0, items: 0, done: 0 }]
  }
  // Others were sampled and this one was not: it has stood still for so long that it need not be.
  const isUnsampled = samples.size > 0 && !samples.has(run.id)
  const begin = now - PACE_WINDOW_MS
  return isUnsampled && (resumedAt ?? startedAt) < begin ? [markOf(run, begin)] : []
}

function markOf(run: Run, at: Millis): ProgressPoint {
  const { pages, itemsNew, itemsUpdated } = run.counts
  return { at, pages, items: itemsNew + itemsUpdated, done: progressOf(run).done ?? 0 }
}

/** What is not done yet and will be; null while targets still come in. */
function remainingTargets(run: Run): number | null {
  if (run.progress) {
    const { done, total } = run.progress
    return total === null || done === null ? null : Math.max(0, total - done)
  }
  return run.plannedAt === null ? null : countOpenTargets(run.counts)
}
