import type { History } from '../shapes.ts'

/** What was done to the runs of one source. */
export type SourceTotals = {
  readonly source: string
  /** Most frequent first. */
  readonly actions: readonly { readonly action: string; readonly count: number }[]
  readonly total: number
  readonly lastAt: string
}

/** One line per source, those with the newest deed first. */
export function totalsBySource(counts: History['counts']): SourceTotals[] {
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

/** What recovery does. A person may do some of it too. */
const RECOVERIES: readonly string[] = [
  'resume',
  'replan',
  'retry',
  'park',
  'hold',
  'fail',
  'abandon',
]

export function isRecovery({ action }: { readonly action: string }): boolean {
  return RECOVERIES.includes(action)
}
