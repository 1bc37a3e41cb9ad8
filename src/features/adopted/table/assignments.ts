import { type CatalogueColumn, type MappedField, writableFields } from './columns.ts'
import type { Cell } from './make-row.ts'
import type { Mapping } from '../mapping.ts'
import type { RowChange } from './table.ts'

/** What is to stand in which column: a moment as a number of milliseconds, or exactly what stood there once. */
export type Assignment =
  | { readonly kind: 'moment'; readonly at: number }
  | { readonly kind: 'value'; readonly value: Cell }
  | { readonly kind: 'restored'; readonly value: Cell }

/** Columns that are not mapped, or cannot be null, are left as they are. */
export function toAssignments(
  mapping: Mapping,
  columns: ReadonlyMap<MappedField, CatalogueColumn>,
  change: RowChange,
): Map<MappedField, Assignment> {
  const { status, finishedAt, error, owner, heartbeatAt, restore = {} } = change
  const assigned = new Map<MappedField, Assignment>()
  const assign = (field: MappedField, assignment: Assignment): void => {
    const column = columns.get(field)
    const isNull = assignment.kind !== 'moment' && assignment.value === null
    if (column && (column.isNullable || !isNull)) assigned.set(field, assignment)
  }
  const assignValue = (field: MappedField, value: Cell | undefined): void => {
    if (value !== undefined) assign(field, { kind: 'value', value })
  }
  for (const field of writableFields(mapping)) {
    const value = restore[mapping.columns[field] ?? '']
    if (value !== undefined) assign(field, { kind: 'restored', value })
  }
  assignValue('status', status)
  assignValue('error', error)
  assignValue('owner', owner)
  assignValue('heartbeatAt', heartbeatAt)
  if (typeof finishedAt === 'number') assign('finishedAt', { kind: 'moment', at: finishedAt })
  else assignValue('finishedAt', finishedAt)
  return assigned
}
