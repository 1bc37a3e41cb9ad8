import type { Alert } from '../model/alert.ts'
import type { Operation } from '../model/operation.ts'
import { RUN_STATUSES, type RunStatus } from '../model/run.ts'
import type { Sample } from '../model/sample.ts'
import { ACTIONS, RUN_AFTER, TARGET_AFTER } from '../model/verdict.ts'
import type { SampleFilter, Trouble } from './watching.ts'

/** Row → model for those who look on, as in `rows.ts`. */

/** A status without a run is there too, with 0. */
export function toRunTotals(
  rows: readonly { status: RunStatus; count: number }[],
): Record<RunStatus, number> {
  const none = RUN_STATUSES.map((status) => [status, 0])
  const found = rows.map(({ status, count }) => [status, count])
  return Object.fromEntries([...none, ...found]) as Record<RunStatus, number>
}

/** How many of the runs that failed last are worth a look at once. */
export const LAST_FAILED_MAX = 500

/** Groups of `troubles` answered. */
export const TROUBLES_MAX = 5_000

export type TroubleRow = Omit<Trouble, 'run' | 'firstAt' | 'lastAt' | 'sample'> & {
  run_id: string
  first_at: number
  last_at: number
  sample_id: string
  sample_key: string
}

export function toTrouble(row: TroubleRow): Trouble {
  return {
    source: row.source,
    run: row.run_id,
    status: row.status,
    error: row.error,
    count: row.count,
    firstAt: row.first_at,
    lastAt: row.last_at,
    sample: { id: row.sample_id, key: row.sample_key },
  }
}

export type SampleRow = Omit<Sample, 'run'> & { run_id: string }

export function toSample({ at, run_id, source, pages, items, done }: SampleRow): Sample {
  return { at, run: run_id, source, pages, items, done }
}

const MINUTE_MS = 60_000
/** How long before this minute a run may have ended to be sampled once more. */
export const LAST_STRETCH_MS = 10 * MINUTE_MS

export function minuteOf(at: number): number {
  return Math.floor(at / MINUTE_MS) * MINUTE_MS
}

/** Where the minutes begin that a long look asks for; null when it asks for all. */
export function someMinutes({ since, until, everyMinutes = 1 }: SampleFilter): number[] | null {
  if (everyMinutes <= 1) return null
  const step = everyMinutes * MINUTE_MS
  const first = Math.ceil(since / step) * step
  const count = Math.max(0, Math.floor((until - first) / step) + 1)
  return Array.from({ length: count }, (_, n) => first + n * step)
}

/** Of the actions that the trail knows, those by which recovery changes something. */
export const RECOVERIES = ACTIONS.filter((action) => action in TARGET_AFTER || action in RUN_AFTER)

export type AlertRow = Pick<
  Alert,
  'cause' | 'rule' | 'source' | 'because' | 'command' | 'since'
> & {
  run_id: string | null
  last_seen_at: number
  last_sent_at: number | null
  resolved_at: number | null
}

export function toAlert(row: AlertRow): Alert {
  return {
    cause: row.cause,
    rule: row.rule,
    source: row.source,
    run: row.run_id,
    because: row.because,
    command: row.command,
    since: row.since,
    lastSeenAt: row.last_seen_at,
    lastSentAt: row.last_sent_at,
    resolvedAt: row.resolved_at,
  }
}

/** Rows are read one beyond the limit to know whether there is more. */
export function toOperations(
  rows: readonly Operation[],
  limit: number,
): { items: Operation[]; next: number | null } {
  const items = rows.slice(0, limit)
  return { items, next: rows.length > limit ? items.at(-1)!.id : null }
}
