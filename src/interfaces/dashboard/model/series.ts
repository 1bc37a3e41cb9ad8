import type { ListedRun, Series } from '../shapes.ts'

type Point = Series['points'][number]

/** A rate over a shorter time is noise. */
const MEASURED_MIN_SECONDS = 10

/** What was counted per step, as a rate over the measured part of it. A step without a sample stays null. */
export function perMinute(
  { points, stepSeconds }: Series,
  what: 'pages' | 'items',
): { at: string; value: number | null }[] {
  return points.map((point) => {
    const value = point[what]
    const seconds = Math.max(point.measuredSeconds, Math.min(stepSeconds, MEASURED_MIN_SECONDS))
    return { at: point.at, value: value === null ? null : round((value * 60) / seconds) }
  })
}

/** The mean rate over the measured time; null without any. */
export function meanPerMinute({ points }: Series, what: 'pages' | 'items'): number | null {
  const known = points.filter((point) => point[what] !== null)
  const sum = (read: (point: Point) => number): number =>
    known.reduce((total, point) => total + read(point), 0)
  const seconds = sum((point) => point.measuredSeconds)
  return seconds === 0 ? null : round((sum((point) => point[what]!) * 60) / seconds)
}

/** The pace of all live runs together, as each is listed; null while that of none is known. */
export function totalPace(runs: readonly Pick<ListedRun, 'pace'>[]): ListedRun['pace'] {
  const paces = runs.flatMap(({ pace }) => (pace === null ? [] : [pace]))
  if (paces.length === 0) return null
  return {
    pagesPerMinute: round(paces.reduce((sum, { pagesPerMinute }) => sum + pagesPerMinute, 0)),
    itemsPerMinute: round(paces.reduce((sum, { itemsPerMinute }) => sum + itemsPerMinute, 0)),
    etaSeconds: null,
  }
}

/** Steps at the end that may not be sampled yet: the current one, and the one before. */
const UNSAMPLED_MAX = 2

/**
 * Cuts off what is before the first sample of a young history, and the last steps while they are not sampled yet, or hardly,
 * so that a chart shows what there is. A gap in between stays.
 */
export function cutUnsampled(series: Series): Series {
  const { points, stepSeconds } = series
  const isSampled = ({ pages, recoveries }: Point): boolean => pages !== null || recoveries > 0
  const first = points.findIndex(isSampled)
  if (first === -1) return series
  const isEnough = (point: Point, index: number): boolean =>
    isSampled(point) &&
    (index === first ||
      point.recoveries > 0 ||
      point.measuredSeconds >= Math.min(stepSeconds / 2, MEASURED_MIN_SECONDS))
  const last = points.findLastIndex(isEnough)
  const until = points.length - 1 - last <= UNSAMPLED_MAX ? last + 1 : points.length
  return { ...series, points: points.slice(first, until) }
}

/** One digit is enough below ten, none above. */
function round(value: number): number {
  return value < 10 ? Math.round(value * 10) / 10 : Math.round(value)
}
