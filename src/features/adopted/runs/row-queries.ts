import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { isLive, LIVE_STATUSES, type RunStatus } from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow, AdoptedTable, RowFilter } from '../table/table.ts'
import { isMapped, runStatusOf, targetStatusOf, statusValuesFor } from './status-mapping.ts'

const PAGE_SIZE = 5_000

/** Of a table of runs all that live, of one of targets what is in progress: in one question, however many tables. */
export async function liveRows(table: AdoptedTable): Promise<AdoptedRow[]> {
  const { mapping } = table
  const statusValues = statusValuesFor(
    mapping,
    mapping.kind === 'runs' ? LIVE_STATUSES : ['in_progress'],
  )
  return allRows(table, { statusValues })
}

/** Page by page, to the last. */
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
    // SQLite answers without letting go of the thread.
    await yieldToEventLoop()
  }
}

/** Something may yet become of it. */
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

/** Back in line: it waits to be taken up, and nobody has it. */
export function isWaiting(mapping: Mapping, statusValue: string): boolean {
  return isOpen(mapping, statusValue) && !isActive(mapping, statusValue)
}

/** Every word in the table that counts as one of these. What nobody mapped has ended, so it is looked for only then. */
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
