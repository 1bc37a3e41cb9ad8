import { identifierMistake, quoteIdentifier } from '../identifiers.ts'
import { findField, isCreationTime, type FoundColumn, type ValueCount } from './columns.ts'

/** How the values of a status are counted, and the values that a CHECK allows. */

/** The columns that show what became of a row, as expressions; null: there is none. */
export type FactColumns = {
  readonly started: string
  readonly ended: string
  readonly failed: string
}

export function factColumns(columns: readonly Omit<FoundColumn, 'values'>[]): FactColumns {
  const usable = columns
    .filter(({ name }) => identifierMistake(name) === null)
    .map((column) => ({ ...column, values: null }))
  const name = (field: 'startedAt' | 'finishedAt' | 'error'): string => {
    const column = findField(usable, field)
    // A creation shows no start.
    const isShown = column !== null && !(field === 'startedAt' && isCreationTime(column))
    return isShown ? quoteIdentifier(column) : 'NULL'
  }
  const error = name('error')
  const failed = error === 'NULL' ? error : `nullif(${error}, '')`
  return { started: name('startedAt'), ended: name('finishedAt'), failed }
}

/** Counts the rows of each value, and what became of them. */
export function countsSql(column: string, table: string, limit: string, facts: FactColumns | null) {
  const names = ['started', 'ended', 'failed'] as const
  const inner = names.map((name) => `, ${facts?.[name] ?? 'NULL'} AS ${name}`).join('')
  const outer = names.map((name) => `, count(${name}) AS ${name}`).join('')
  return {
    counts: outer,
    from: `(SELECT ${column} AS value${inner} FROM ${table} ${limit}) AS rows`,
  }
}

export type CountRow = ValueCount & { started: unknown; ended: unknown; failed: unknown }

export function toValueCount(
  { value, count, started, ended, failed }: CountRow,
  facts: FactColumns | null,
): ValueCount {
  const counted = { value, count }
  if (facts === null) return counted
  const rows = { started: Number(started), ended: Number(ended), failed: Number(failed) }
  return { ...counted, rows }
}

const QUOTED = /'(?:[^']|'')*'/g
const CAST = /::\s*(?:character varying|[a-z_]+)(?:\(\d+\))?(?:\[\])?/gi
const NAME = /"[^"]+"|`[^`]+`|\[\w+\]|[a-z_]\w*/gi

/**
 * Returns the values that a CHECK such as `status IN ('running', 'done')` allows. Null if it is about another column, or
 * excludes values instead of listing them (`status <> ''`).
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
  return quoted.map((value) => value.slice(1, -1).replaceAll("''", "'"))
}
