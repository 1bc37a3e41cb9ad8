import type { Millis } from '../../../core/model/time.ts'
import type { Field, TimeField } from './columns.ts'
import type { UserRow } from '../mapping.ts'
import type { AdoptedRow } from './table.ts'

/** What stood in a column. */
export type Cell = string | number | bigint | null

export type RowParts = {
  /** Null: it is not mapped, or nothing stands there. */
  readonly cell: (field: Field) => Cell
  readonly moment: (field: TimeField) => Millis | null
  readonly hasCheckpoint: boolean
  readonly user: UserRow
  readonly stamp: AdoptedRow['stamp']
}

/** What the columns of a row mean. */
export function makeRow({ cell, moment, hasCheckpoint, user, stamp }: RowParts): AdoptedRow {
  const text = (field: Field): string | null => {
    const value = cell(field)
    return value === null ? null : String(value)
  }
  const key = text('id') ?? ''
  return {
    key,
    word: text('status') ?? '',
    source: text('source'),
    startedAt: moment('startedAt'),
    finishedAt: moment('finishedAt'),
    error: text('error'),
    heartbeatAt: moment('heartbeatAt'),
    activityAt: moment('activityAt'),
    owner: text('owner'),
    extracted: countOf(cell('extracted')) ?? 0,
    skipped: countOf(cell('skipped')) ?? 0,
    done: countOf(cell('done')),
    total: countOf(cell('total')),
    hasCheckpoint,
    target: {
      key: text('key') ?? key,
      group: text('group'),
      url: text('url'),
      page: countOf(cell('page')) ?? 0,
      pageTarget: countOf(cell('pageTarget')),
      attempts: countOf(cell('attempts')) ?? 0,
    },
    user,
    stamp,
  }
}

/** A counter, also one kept as text; whatever is no number counts as nothing said. */
function countOf(value: Cell): number | null {
  if (value === null || (typeof value === 'string' && value.trim() === '')) return null
  const count = Number(value)
  return Number.isFinite(count) ? count : null
}

/** Whether there is anything to go on from. */
export function saysSomething(checkpoint: Cell): boolean {
  return checkpoint !== null && !/^\s*(?:\{\s*\}|null)?\s*$/.test(String(checkpoint))
}
