import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { isLive, LIVE_STATUSES, type RunStatus } from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow, AdoptedTable, RowFilter } from '../table/table.ts'
import { isMapped, runStatusOf, targetStatusOf, statusValuesFor } from './status-mapping.ts'

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

/** Reads all rows that match, page by page. */
export async function allRows(
  table: AdoptedTable,
  filter: Omit<RowFilter, 'limit' | 'after'>,
): Promise<AdoptedRow[]> {
  const all: AdoptedRow[] = []
  for (;;) {
    const last = all.at(-1)
    const after = last && { after: { startedAt: last.startedAt, key: last.key } }
    const page = await table.rows({ ...filter, ...after, limit: PAGE_SIZE })
    all.push(...page)
    if (page.length < PAGE_SIZE) return all
    // SQLite queries block the event loop.
    await yieldToEventLoop()
  }
}

/** Not ended. */
export function isOpen(mapping: Mapping, statusValue: string): boolean {
  if (mapping.kind === 'runs') return isLive(runStatusOf(mapping, statusValue))
  const status = targetStatusOf(mapping, statusValue)
  return status === 'planned' || status === 'in_progress'
}

export function isActive(mapping: Mapping, statusValue: string): boolean {
  return mapping.kind === 'runs'
    ? runStatusOf(mapping, statusValue) === 'running'
    : targetStatusOf(mapping, statusValue) === 'in_progress'
}

/** Waits to be claimed. */
export function isWaiting(mapping: Mapping, statusValue: string): boolean {
  return isOpen(mapping, statusValue) && !isActive(mapping, statusValue)
}

/** Returns all status values that mean one of these. Unmapped values are read only if ended statuses are wanted. */
export async function statusValuesIn(
  table: AdoptedTable,
  statuses: readonly (RunStatus | TargetStatus)[],
): Promise<string[]> {
  const { mapping } = table
  const statusValues = statusValuesFor(mapping, statuses)
  if (statuses.every((status) => OPEN_STATUSES.has(status))) return statusValues
  const isWanted = (value: string): boolean =>
    statuses.includes(
      mapping.kind === 'runs' ? runStatusOf(mapping, value) : targetStatusOf(mapping, value),
    )
  const found = new Set((await table.counts()).map(({ value }) => value))
  return [
    ...statusValues,
    ...[...found].filter((value) => !isMapped(mapping, value) && isWanted(value)),
  ]
}

const OPEN_STATUSES: ReadonlySet<RunStatus | TargetStatus> = new Set([
  ...LIVE_STATUSES,
  'planned',
  'in_progress',
  'stuck',
  'parked',
])
