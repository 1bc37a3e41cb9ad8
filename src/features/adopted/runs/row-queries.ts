import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { LIVE_STATUSES, type RunStatus } from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import type { MappedValue } from '../mapping.ts'
import type { AdoptedRow, AdoptedTable, RowFilter } from '../table/table.ts'
import { positionOf, type ListPosition } from './cursor.ts'
import { isMapped, statusOf, statusValuesFor } from './status-mapping.ts'

const PAGE_SIZE = 5_000

/** Returns the live rows of a table of runs, or the rows in progress of a table of targets. */
export async function liveRows(table: AdoptedTable): Promise<AdoptedRow[]> {
  const { mapping } = table
  const statusValues = statusValuesFor(
    mapping,
    mapping.kind === 'runs' ? LIVE_STATUSES : ['in_progress'],
  )
  return allRows(table, { statusValues })
}

/** Reads a page of rows, and the position after it; null: these are the last. */
export async function readPage(
  table: AdoptedTable,
  filter: RowFilter,
): Promise<{ page: AdoptedRow[]; next: ListPosition | null }> {
  const found = await table.rows({ ...filter, limit: filter.limit + 1 })
  const page = found.slice(0, filter.limit)
  return { page, next: found.length > filter.limit ? positionOf(page.at(-1)!) : null }
}

/** Reads all rows that match, page by page. */
export async function allRows(
  table: AdoptedTable,
  filter: Omit<RowFilter, 'limit' | 'after'>,
): Promise<AdoptedRow[]> {
  const all: AdoptedRow[] = []
  for (;;) {
    const last = all.at(-1)
    const after = last && { after: positionOf(last) }
    const page = await table.rows({ ...filter, ...after, limit: PAGE_SIZE })
    all.push(...page)
    if (page.length < PAGE_SIZE) return all
    // SQLite queries block the event loop.
    await yieldToEventLoop()
  }
}

/** Returns all status values that mean one of these. Unmapped values are read only if ended statuses are wanted. */
export async function statusValuesIn(
  table: AdoptedTable,
  statuses: readonly (RunStatus | TargetStatus)[],
): Promise<MappedValue[]> {
  const { mapping } = table
  const statusValues = statusValuesFor(mapping, statuses)
  if (statuses.every((status) => OPEN_STATUSES.has(status))) return statusValues
  const unmapped = (await table.counts())
    .filter((one) => !isMapped(mapping, one) && statuses.includes(statusOf(mapping, one)))
    .map(({ status }) => status)
  const others = [...new Set(unmapped)].map((value) => ({ value, hasError: null }))
  return [...statusValues, ...others]
}

const OPEN_STATUSES: ReadonlySet<RunStatus | TargetStatus> = new Set([
  ...LIVE_STATUSES,
  'planned',
  'in_progress',
  'stuck',
  'parked',
])
