/** What a chart draws: a value per step, null where nothing was measured, which is not the same as 0. */
export type ChartPoint = { readonly at: string; readonly value: number | null }

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const TIME_STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * 1_000),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((count) => count * MINUTE),
]

/** Round values from 0 to at or above the highest, so that a bar's height is its share. */
export function valueTicks(max: number, isWhole: boolean, spacesMax = 4): number[] {
  if (!(max > 0)) return [0, 1]
  const rough = max / spacesMax
  const power = 10 ** Math.floor(Math.log10(rough))
  const round = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999)!
  const step = isWhole ? Math.max(1, Math.round(round)) : round
  const spaces = Math.ceil(max / step - 1e-9)
  return Array.from({ length: spaces + 1 }, (_, index) => tidy(index * step))
}

/** Round moments of the reader's own clock, at most `room` of them. */
export function timeTicks(from: number, until: number, room: number): number[] {
  const span = until - from
  if (span <= 0 || room < 1) return []
  const step = TIME_STEPS.find((one) => span / one <= room)
  const ticks: number[] = []
  if (step === undefined) {
    const days = Math.max(1, Math.ceil(span / DAY / room))
    for (let at = midnight(from, 1); at <= until; at = midnight(at, days)) ticks.push(at)
    return ticks
  }
  const first = midnight(from, 0)
  const skipped = Math.ceil((from - first) / step)
  for (let at = first + skipped * step; at <= until; at += step) ticks.push(at)
  return ticks
}

/** Midnight by the reader's clock, so many days after the day of `at`. */
function midnight(at: number, days: number): number {
  const day = new Date(at)
  day.setHours(0, 0, 0, 0)
  day.setDate(day.getDate() + days)
  return day.getTime()
}

/** `14:30`, `14:30:15` within a minute, or the day where a tick is a midnight. */
export function timeLabel(at: number): string {
  const moment = new Date(at)
  const isMidnight = moment.getHours() === 0 && moment.getMinutes() === 0
  return isMidnight
    ? moment.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
    : moment.toLocaleTimeString('en-GB', {
        hour: '2-digit',
        minute: '2-digit',
        ...(at % MINUTE !== 0 && { second: '2-digit' }),
        hourCycle: 'h23',
      })
}

/** A value as short as it stays honest: `0.4`, `12.5`, `840`, `12,400`, `1.2M`. */
export function valueLabel(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e6)
    return new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(
      value,
    )
  return new Intl.NumberFormat('en', {
    maximumFractionDigits: size >= 100 ? 0 : size >= 1 ? 1 : 2,
  }).format(value)
}

/** From one range onto another. */
export function linear(from: number, to: number, low: number, high: number) {
  const span = to - from || 1
  return (value: number): number => low + ((value - from) / span) * (high - low)
}

/** Points in a row that were measured: where one was not, the line has a gap. */
export function measuredRanges(points: readonly ChartPoint[]): number[][] {
  const found: number[][] = []
  let current: number[] | null = null
  for (const [index, { value }] of points.entries()) {
    if (value === null) current = null
    else if (current) current.push(index)
    else found.push((current = [index]))
  }
  return found
}

/** The newest value, unless it is older than two steps, and the highest one, unless that is 0. */
export function currentAndPeak(points: readonly ChartPoint[]): {
  readonly now: number | null
  readonly peak: ChartPoint | null
} {
  const now = points.slice(-3).findLast(({ value }) => value !== null)?.value ?? null
  let peak: ChartPoint | null = null
  for (const point of points) {
    if (point.value !== null && point.value > (peak?.value ?? 0)) peak = point
  }
  return { now, peak }
}

/** The point under a pointer; null when there is none. */
export function nearest(places: readonly number[], place: number): number | null {
  let best: number | null = null
  for (const [index, one] of places.entries()) {
    if (best === null || Math.abs(one - place) < Math.abs(places[best]! - place)) best = index
  }
  return best
}

/** Returns the point that a key leads to; null for other keys. The first key starts at the newest point. */
export function pointAfterKey(key: string, from: number | null, count: number): number | null {
  const last = count - 1
  const at = from ?? last
  const to = {
    ArrowLeft: from === null ? last : at - 1,
    ArrowRight: at + 1,
    PageUp: at - 10,
    PageDown: at + 10,
    Home: 0,
    End: last,
  }[key]
  return to === undefined || count === 0 ? null : Math.min(last, Math.max(0, to))
}

/** 0.30000000000000004 is 0.3. */
function tidy(value: number): number {
  return Number(value.toPrecision(12))
}
