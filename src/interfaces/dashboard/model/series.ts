import type { Series } from '../shapes.ts'

/** What was counted per step, as a rate: steps differ in length with the range. A step without a sample stays null. */
export function perMinute(
  { points, stepSeconds }: Series,
  what: 'pages' | 'items',
): { at: string; value: number | null }[] {
  return points.map((point) => {
    const value = point[what]
    return { at: point.at, value: value === null ? null : round((value * 60) / stepSeconds) }
  })
}

/** Steps at the end that may not be sampled yet: the current one, and the one before. */
const UNSAMPLED_MAX = 2

/**
 * Cuts off what is before the first sample of a young history, and the last steps while they are not sampled yet, so that a
 * chart shows what there is. A gap in between stays.
 */
export function cutUnsampled(series: Series): Series {
  const { points } = series
  const isSampled = ({ pages, recoveries }: Series['points'][number]): boolean =>
    pages !== null || recoveries > 0
  const first = points.findIndex(isSampled)
  if (first === -1) return series
  const last = points.findLastIndex(isSampled)
  const until = points.length - 1 - last <= UNSAMPLED_MAX ? last + 1 : points.length
  return { ...series, points: points.slice(first, until) }
}

/** One digit is enough below ten, none above. */
function round(value: number): number {
  return value < 10 ? Math.round(value * 10) / 10 : Math.round(value)
}
