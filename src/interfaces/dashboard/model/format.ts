import { humanizeDuration, humanizeRange } from '../../../core/model/time.ts'
import { safeJson, safeText } from '../../../lib/text/safe-text.ts'
import type { ListedRun } from '../shapes.ts'

const NUMBER = new Intl.NumberFormat('en')

/** `12,480` */
export function formatNumber(value: number): string {
  return NUMBER.format(value)
}

/** `12`; `?` for a number that is not known. */
export function formatKnown(value: number | null): string {
  return value === null ? '?' : formatNumber(value)
}

/** Pages per minute; null where they are not known, or none were ever reported: a wrapped command may report targets alone. */
export function formatRate({ pages, pace }: Pick<ListedRun, 'pages' | 'pace'>): string | null {
  if (pace === null || !pages) return null
  // It reports progress of another kind now.
  return pace.pagesPerMinute === 0 && pace.etaSeconds ? null : formatNumber(pace.pagesPerMinute)
}

/** Splits `Something is stuck: 2 runs …` or `Nothing is stuck. 3 things …` into its first sentence and the rest. */
export function splitSummary(summary: string): { line: string; detail: string } {
  const end = summary.search(/: |\. /)
  if (end === -1) return { line: summary, detail: '' }
  return { line: `${summary.slice(0, end)}.`, detail: summary.slice(end + 2) }
}

/** `1 target`, `3 targets` */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : many}`
}

/** The last 8 digits. */
export function shortId(id: string): string {
  return id.slice(-8)
}

/** The own id of a row of the user's, in full; else the last 8 digits. */
export function runId({ id, origin }: { id: string; origin: { key: string } | null }): string {
  return origin?.key ? safe(origin.key) : shortId(id)
}

/** How long ago: `now`, `4 s ago`, `12 min ago`; `in 4 s` for what is to come. */
export function formatAge(at: number, now: number): string {
  const ms = now - at
  // Clocks differ by a little.
  if (Math.abs(ms) < 1_000) return 'now'
  return ms > 0 ? `${humanizeDuration(ms)} ago` : `in ${humanizeDuration(-ms)}`
}

/** `2026-11-16 14:56:47` where the reader is, and the same in UTC. */
export function formatTimes(at: number): string {
  const utc = new Date(at).toISOString().slice(0, 19).replace('T', ' ')
  return `${formatLocalTime(at)} local\n${utc} UTC`
}

export function formatLocalTime(at: number): string {
  const date = new Date(at)
  const shifted = new Date(at - date.getTimezoneOffset() * 60_000)
  return shifted.toISOString().slice(0, 19).replace('T', ' ')
}

/** A length of time between two moments: `4 h`, `12 min`. */
export function formatDuration(from: string, to: string | number): string {
  return humanizeDuration(
    Math.max(0, (typeof to === 'number' ? to : Date.parse(to)) - Date.parse(from)),
  )
}

/** The time left, as a range: `12–18 min`, `about 4 h`; null if it is not known. */
export function formatEta(eta: { from: number; to: number } | null | undefined): string | null {
  if (!eta) return null
  const range = humanizeRange(eta.from * 1_000, eta.to * 1_000)
  return range.includes('–') ? range : `about ${range}`
}

/** `42 %`; never 100 before the end, never 0 after the start. */
export function percent(done: number, total: number): number {
  if (total <= 0) return 0
  if (done >= total) return 100
  return done <= 0 ? 0 : Math.min(99, Math.max(1, Math.round((done / total) * 100)))
}

/** `row 4711 of courses`; a table of targets is one run as a whole. */
export function formatRow({
  table,
  key,
}: {
  readonly table: string
  readonly key: string
}): string {
  return key === '' ? `the table ${table}` : `row ${key} of ${table}`
}

/** True for a row of a table of your own: it has no targets. */
export function isRow({ origin }: { readonly origin: { readonly key: string } | null }): boolean {
  return origin !== null && origin.key !== ''
}

/** Scraped text as it may be shown: control and direction characters become visible escapes, lines stay lines. */
export function safe(text: string): string {
  return text
    .split(/\r\n|[\n\r]/)
    .map(safeText)
    .join('\n')
}

/** A value as indented JSON, as harmless as `safe`. */
export function jsonText(value: unknown): string {
  return safeJson(value, 2)
}

/** The address as a link may have it, or null: nothing but http(s) is ever clickable. */
export function linkable(text: string | null): string | null {
  if (text === null || !URL.canParse(text)) return null
  const { protocol } = new URL(text)
  return protocol === 'http:' || protocol === 'https:' ? text : null
}

/** Colours of meaning: `busy` moves on, `quiet` is over or not begun. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'quiet'

type Severity = NonNullable<ListedRun['severity']>

const SEVERITY_TONES: Readonly<Record<Severity, Tone>> = {
  stuck: 'bad',
  attention: 'warn',
  ok: 'good',
}

export function toneOfSeverity(severity: Severity): Tone {
  return SEVERITY_TONES[severity]
}

/** The tone of a health state: that of its severity; what needs no attention has its own. */
export function toneOfHealth(severity: Severity | null | undefined, own: Tone): Tone {
  return severity && severity !== 'ok' ? toneOfSeverity(severity) : own
}
