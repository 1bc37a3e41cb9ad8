import { sumStats } from '../model/latency.ts'
import { RUN_STATUSES, type RunStatus } from '../model/run.ts'

/** Row → model for reads, as in `rows.ts`. */

/** A status without a run is there too, with 0. */
export function toRunTotals(
  rows: readonly { status: RunStatus; count: number }[],
): Record<RunStatus, number> {
  const none = RUN_STATUSES.map((status) => [status, 0])
  const found = rows.map(({ status, count }) => [status, count])
  return Object.fromEntries([...none, ...found]) as Record<RunStatus, number>
}

const MINUTE_MS = 60_000
/** How long before this minute a run may have ended to be sampled once more. */
export const LAST_STRETCH_MS = 10 * MINUTE_MS

/**
 * After this long without progress a run counts as idle. A long period is read in minutes at most this far apart, or on the
 * hour: a run without a sample there has not progressed since the one before.
 */
export const IDLE_AFTER_MS = 30 * MINUTE_MS

export function minuteOf(at: number): number {
  return Math.floor(at / MINUTE_MS) * MINUTE_MS
}

export function hourOf(at: number): number {
  return Math.floor(at / (60 * MINUTE_MS)) * 60 * MINUTE_MS
}

/** Workers whose stats are added up at once: a short transaction each. */
export const FOLD_BATCH = 1_000

/** Rows that are removed at once: other writers wait no longer than for a page. */
export const DELETE_BATCH = 500

/** Removes batch after batch until one is not full. Returns how many were removed in all. */
export async function deleteInBatches(
  remove: () => Promise<number>,
  batch = DELETE_BATCH,
): Promise<number> {
  for (let total = 0; ;) {
    const count = await remove()
    total += count
    if (count < batch) return total
  }
}

/** One of them keeps the sum of all. */
export function foldStats(rows: readonly { id: string; stats: unknown }[]): {
  keeper: string
  sum: string
  others: string[]
} | null {
  const [keeper, ...others] = rows
  if (!keeper || others.length === 0) return null
  const sum = JSON.stringify(sumStats(rows.map(({ stats }) => stats)))
  return { keeper: keeper.id, sum, others: others.map(({ id }) => id) }
}
