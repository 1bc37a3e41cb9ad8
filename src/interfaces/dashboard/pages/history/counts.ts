import type { HistoryAnswer } from './shape.ts'

/** What was done to the runs of one source. */
export type SourceTotals = {
  readonly source: string
  /** Most frequent first. */
  readonly actions: readonly { readonly action: string; readonly count: number }[]
  readonly total: number
  readonly lastAt: string
}

/** One line per source, those with the newest deed first. */
export function totalsBySource(counts: HistoryAnswer['counts']): SourceTotals[] {
  return [...Map.groupBy(counts, ({ source }) => source)]
    .map(([source, all]) => ({
      source,
      actions: all
        .toSorted((a, b) => b.count - a.count)
        .map(({ action, count }) => ({ action, count })),
      total: all.reduce((sum, { count }) => sum + count, 0),
      lastAt: all.map(({ lastAt }) => lastAt).reduce((a, b) => (a > b ? a : b)),
    }))
    .toSorted((a, b) => (a.lastAt < b.lastAt ? 1 : -1))
}
