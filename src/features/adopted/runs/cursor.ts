import { UsageError } from '../../../core/model/errors.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { AdoptedRow } from '../table/table.ts'

/** Where a list stands in a table: behind this row. */
export type ListPosition = { readonly startedAt: Millis | null; readonly key: string }

/** Where a merged list stands in each of its parts: behind this, at its beginning (left out), or at its end (null). */
export type ListPositions = {
  readonly own?: string | null | undefined
  readonly tables: Readonly<Record<string, ListPosition | null>>
}

const PREFIX = 'adopted.'

export function positionOf({ startedAt, key }: AdoptedRow): ListPosition {
  return { startedAt, key }
}

/** As callers see it: a text that they give back as it is. */
export function encodeCursor(positions: ListPositions): string {
  return PREFIX + Buffer.from(JSON.stringify(positions)).toString('base64url')
}

/** A cursor of our own store alone is its plain one: then nothing of the tables is left to be listed. */
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
    // What is no JSON is no cursor.
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
