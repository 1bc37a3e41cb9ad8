import * as v from 'valibot'
import { UsageError } from '../../../core/model/errors.ts'
import type { AdoptedRow } from '../table/table.ts'

const POSITION = v.object({ listedAt: v.nullable(v.number()), key: v.string() })
const POSITIONS = v.object({
  own: v.optional(v.nullable(v.string())),
  tables: v.record(v.string(), v.nullable(POSITION)),
})

/** A position in a table: after this row. */
export type ListPosition = Readonly<v.InferOutput<typeof POSITION>>

/** A position in each part of a merged list: after this, at the start (undefined), or at the end (null). */
export type ListPositions = Readonly<v.InferOutput<typeof POSITIONS>>

const PREFIX = 'sources.'

export function positionOf({ listedAt, key }: AdoptedRow): ListPosition {
  return { listedAt, key }
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
    return v.parse(
      POSITIONS,
      JSON.parse(Buffer.from(text.slice(PREFIX.length), 'base64url').toString()),
    )
  } catch {
    throw new UsageError('`after` is no place in this list: give `next` of an earlier answer.')
  }
}
