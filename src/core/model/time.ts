/** A moment, in milliseconds since 1970 (UTC), by the store's clock unless noted otherwise. */
export type Millis = number

/** A moment as text: ISO 8601 in UTC with milliseconds. Sorts as text. */
export type Timestamp = string

const UNITS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** A length of time with its unit: `'250ms'`, `'30s'`, `'15m'`, `'24h'`, `'7d'`. A bare number has no unit and is refused. */
export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** Returns the milliseconds of a duration, or null if it is not one. */
export function parseDuration(value: unknown): number | null {
  if (typeof value !== 'string') return null
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value.trim())
  const unit = match && UNITS[match[2]!]
  return match && unit ? Math.round(Number(match[1]) * unit) : null
}

/** Formats a duration in its largest exact unit: `15m`, `24h`, `250ms`; days from the third on. */
export function formatDuration(ms: number): string {
  const isLong = ms > 2 * UNITS['d']!
  const fitting = Object.entries(UNITS).findLast(
    ([name, unit]) => ms > 0 && ms % unit === 0 && (name !== 'd' || isLong),
  )
  return fitting ? `${ms / fitting[1]}${fitting[0]}` : `${ms}ms`
}

/** Formats an age for reading: `850 ms`, `4 s`, `12 min`, `26 h`, `3 days`. */
export function humanizeDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 86_400_000)} days`
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1e3, min: 6e4, h: 3.6e6, days: 8.64e7 }

/** Formats an estimate: `12–18 min`, `50 min – 3 h`, `2 h` when both are about that. */
export function humanizeRange(fromMs: number, toMs: number): string {
  const [low, high] = [humanizeDuration(fromMs), humanizeDuration(toMs)]
  const unit = high.split(' ')[1]!
  const unitMs = UNIT_MS[unit] ?? 1
  if (fromMs < unitMs && !low.endsWith(` ${unit}`)) return `${low} – ${high}`
  const from = Math.round(fromMs / unitMs)
  return `${from} ${unit}` === high ? high : `${from}–${high}`
}

/** Formats a moment in the past for a sentence: `just now`, `4 s ago`. */
export function humanizeAgo(ms: number): string {
  return ms < 1_000 ? 'just now' : `${humanizeDuration(ms)} ago`
}

export function iso(at: Millis): string {
  return new Date(at).toISOString()
}
