import type { Series } from '../shapes.ts'

/** What was counted per step, as a rate: steps differ in length with the range. A step without a sample stays null. */
export function perMinute(
  { points, stepSeconds }: Series,
  what: 'pages' | 'items',
  { from, to }: { from: string; to: string | null } = { from: '', to: null },
): { at: string; value: number | null }[] {
  return points
    .filter(({ at }) => at >= from && (to === null || at <= to))
    .map((point) => {
      const value = point[what]
      return { at: point.at, value: value === null ? null : round((value * 60) / stepSeconds) }
    })
}

/** One digit is enough below ten, none above. */
function round(value: number): number {
  return value < 10 ? Math.round(value * 10) / 10 : Math.round(value)
}

const HOUR_MS = 3_600_000
const RANGES = [
  ['1h', HOUR_MS],
  ['2h', 2 * HOUR_MS],
  ['6h', 6 * HOUR_MS],
  ['24h', 24 * HOUR_MS],
  ['3d', 72 * HOUR_MS],
  ['7d', 168 * HOUR_MS],
] as const

/** The shortest range that shows a run from its beginning; samples are kept for a week. */
export function rangeOf(createdAt: string, now: number): string {
  const age = now - Date.parse(createdAt)
  return (RANGES.find(([, ms]) => age <= ms) ?? RANGES.at(-1)!)[0]
}
