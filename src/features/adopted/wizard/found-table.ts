/** A table as the database's catalogue shows it, with the words that were found in it. */
export type FoundTable = {
  /** Null: the search path finds it (PostgreSQL), or there is none (SQLite). */
  readonly schema: string | null
  readonly table: string
  readonly columns: readonly FoundColumn[]
  /** Why its rows could not be read; null: they were, where it mattered. */
  readonly readError: string | null
}

export type FoundColumn = {
  readonly name: string
  readonly type: ColumnType
  /** It is the primary key, alone. */
  readonly isPrimaryKey: boolean
  /** The words that its type or a check allows; null: any. */
  readonly allowedValues: readonly string[] | null
  /** What stands in it, most often first; null where nobody looked. */
  readonly values: readonly ValueCount[] | null
}

export type ValueCount = { readonly word: string; readonly count: number }

/** `moment`: a time with its zone; `local`: one without. Text and numbers may be times too. */
export type ColumnType =
  | 'text'
  | 'enum'
  | 'number'
  | 'moment'
  | 'local'
  | 'uuid'
  | 'json'
  | 'boolean'
  | 'other'

/** More different words than this are no statuses. */
export const VALUES_MAX = 40
/** Characters of a word that are read: no status is longer. */
export const VALUE_LENGTH_MAX = 80

/** A name by its words: `startedAt`, `Started At` and `started_at` are the same. */
export function normalizeName(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
}

/** How it is named in a config. */
export function qualifiedName({ schema, table }: Pick<FoundTable, 'schema' | 'table'>): string {
  return schema === null ? table : `${schema}.${table}`
}

const QUOTED = /'(?:[^']|'')*'/g
const CAST = /::\s*(?:character varying|[a-z_]+)(?:\(\d+\))?(?:\[\])?/gi
const NAME = /"[^"]+"|`[^`]+`|\[\w+\]|[a-z_]\w*/gi

/**
 * The words in a check such as `status IN ('running', 'done')`, if it is about this column and nothing else, and lists
 * them: one that says what may not stand there (`status <> ''`) allows any other.
 */
export function valuesInCheck(check: string, column: string): string[] | null {
  const quoted = check.match(QUOTED)
  if (!quoted) return null
  const rest = check.replaceAll(QUOTED, ' ').replaceAll(CAST, ' ')
  if (!/^[\s()[\],=]*$/.test(rest.replaceAll(NAME, ' '))) return null
  const names = rest
    .match(NAME)
    ?.map((name) => name.replaceAll(/["`[\]]/g, ''))
    .filter((name) => !/^(check|in|any|array|or|is|null)$/i.test(name))
  if (!names?.every((name) => name.toLowerCase() === column.toLowerCase())) return null
  return quoted.map((word) => word.slice(1, -1).replaceAll("''", "'"))
}
