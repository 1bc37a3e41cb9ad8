import { UsageError } from '../../../core/model/errors.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { AdoptedRow } from '../table/table.ts'

/** A position in a table: after this row. */
export type ListPosition = { readonly startedAt: Millis | null; readonly key: string }

/** A position in each part of a merged list: after this, at the start (undefined), or at the end (null). */
export type ListPositions = {
  readonly own?: string | null | undefined
  readonly tables: Readonly<Record<string, ListPosition | null>>
}

const PREFIX = 'sources.'

export function positionOf({ startedAt, key }: AdoptedRow): ListPosition {
  return { startedAt, key }
}

/** Encodes positions as an opaque text for callers. */
export function encodeCursor(positions: ListPositions): string {
  return PREFIX + Buffer.from(JSON.stringify(positions)).toString('base64url')
}

/** A cursor that is not JSON is the store's own: then the tables are at their end. */
export function decodeCursor(text: string | undefined, names: readonly string[]): ListPositions {
  if (text === undefined) return { tables: {} }
  if (!text.startsWith(PREFIX))
    return { own: text, tables: Object.fromEntries(names.map((name) => [name, null])) }
  try {
    const read = JSON.parse(
      Buffer.from(text.slice(PREFIX.length), 'base64url').toString(),
    ) as unknown
    if (isPositions(read)) return read
  } catch {
    // Not a cursor of a merged list.
  }
  throw new UsageError('This is not a place in a list: give `after` as the last answer gave it.')
}

function isPositions(value: unknown): value is ListPositions {
  if (!isRecord(value) || !isRecord(value['tables'])) return false
  const { own } = value
  return (
    (own === undefined || own === null || typeof own === 'string') &&
    Object.values(value['tables']).every((one) => one === null || isPosition(one))
  )
}

function isPosition(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { startedAt, key } = value
  return typeof key === 'string' && (startedAt === null || typeof startedAt === 'number')
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
