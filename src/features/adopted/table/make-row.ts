import type { Millis } from '../../../core/model/time.ts'
import type { MappedField, TimeField } from './columns.ts'
import type { UserRow } from '../mapping.ts'
import type { AdoptedRow } from './table.ts'

/** A value of a column. */
export type Cell = string | number | bigint | null

export type RowParts = {
  /** Null: not mapped, or NULL. */
  readonly cell: (field: MappedField) => Cell
  readonly timestamp: (field: TimeField) => Millis | null
  readonly hasCheckpoint: boolean
  readonly userRow: UserRow
  readonly snapshot: AdoptedRow['snapshot']
}

/** Maps the columns of a row to its fields. */
export function makeRow({
  cell,
  timestamp,
  hasCheckpoint,
  userRow,
  snapshot,
}: RowParts): AdoptedRow {
  const text = (field: MappedField): string | null => {
    const value = cell(field)
    return value === null ? null : String(value)
  }
  const key = text('id') ?? ''
  return {
    key,
    status: text('status') ?? '',
    source: text('source'),
    startedAt: timestamp('startedAt'),
    finishedAt: timestamp('finishedAt'),
    error: text('error'),
    heartbeatAt: timestamp('heartbeatAt'),
    activityAt: timestamp('activityAt'),
    owner: text('owner'),
    extracted: toCount(cell('extracted')) ?? 0,
    skipped: toCount(cell('skipped')) ?? 0,
    done: toCount(cell('done')),
    total: toCount(cell('total')),
    hasCheckpoint,
    target: {
      key: text('key') ?? key,
      group: text('group'),
      url: text('url'),
      page: toCount(cell('page')) ?? 0,
      pageTarget: toCount(cell('pageTarget')),
      attempts: toCount(cell('attempts')) ?? 0,
    },
    userRow,
    snapshot,
  }
}

/** Reads a counter, also from text; null if it is not a number. */
function toCount(value: Cell): number | null {
  if (value === null || (typeof value === 'string' && value.trim() === '')) return null
  const count = Number(value)
  return Number.isFinite(count) ? count : null
}

/** Whether a checkpoint is not empty. */
export function hasContent(checkpoint: Cell): boolean {
  return checkpoint !== null && !/^\s*(?:\{\s*\}|null)?\s*$/.test(String(checkpoint))
}
