import type { Millis } from '../core/model/time.ts'
import type { Pace } from './records.ts'

/** How far a run had come at one moment. */
export type ProgressPoint = {
  readonly at: Millis
  readonly pages: number
  readonly items: number
  readonly done: number
}

/** Over how long. */
export const PACE_WINDOW_MS = 5 * 60_000
/** What is known of a shorter time is noise. */
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
    pagesPerMinute: rounded(grown(({ pages }) => pages) / minutes),
    itemsPerMinute: rounded(grown(({ items }) => items) / minutes),
    etaSeconds: eta(
      open,
      grown(({ done }) => done),
      minutes * 60,
    ),
  }
}

/** Chance alone moves a count by about its square root: after one target it may take half as long, or twice. */
function eta(open: number | null, done: number, seconds: number): Pace['etaSeconds'] {
  if (open === null || done <= 0) return null
  const likely = (open * seconds) / done
  const doubt = 1 + 1 / Math.sqrt(done)
  return { from: Math.round(likely / doubt), to: Math.round(likely * doubt) }
}

/** Slow runs have paces below one. */
function rounded(rate: number): number {
  return rate >= 10 ? Math.round(rate) : Math.round(rate * 10) / 10
}
