import type { Cell } from './make-row.ts'
import type { AdoptedColumns, Mapping } from '../mapping.ts'
import type { RowChange } from './table.ts'
import { closest } from '../../../core/model/closest.ts'
import { UsageError } from '../../../core/model/errors.ts'

/** The mapped columns of a table, as the database's catalogue has them. */

export type MappedField = keyof AdoptedColumns

/** `any`: SQLite, where a column takes what it is given. */
export type ColumnKind =
  | 'text'
  | 'enum'
  | 'uuid'
  | 'integer'
  | 'number'
  | 'timestamptz'
  | 'timestamp'
  | 'date'
  | 'json'
  | 'other'
  | 'any'

export type CatalogueColumn = {
  readonly name: string
  /** For people. */
  readonly type: string
  readonly kind: ColumnKind
  readonly isNullable: boolean
  /** The database makes its value itself, in the table or in a view. */
  readonly isComputed: boolean
  /** Of an enum. */
  readonly labels: readonly string[] | null
  /** Characters that it takes; null: as many as there are. */
  readonly maxLength: number | null
}

export const TIME_FIELDS = ['startedAt', 'finishedAt', 'heartbeatAt', 'activityAt'] as const
export type TimeField = (typeof TIME_FIELDS)[number]

const NUMBERS: readonly ColumnKind[] = ['integer', 'number', 'text', 'any']
const TIMES: readonly ColumnKind[] = [
  'timestamptz',
  'timestamp',
  'date',
  'text',
  'integer',
  'number',
  'any',
]
/** What each may be. Left out: anything. */
const ALLOWED_KINDS: Partial<Record<MappedField, readonly ColumnKind[]>> = {
  id: ['text', 'uuid', 'integer', 'number', 'any'],
  status: ['text', 'enum', 'any'],
  error: ['text', 'json', 'any'],
  startedAt: TIMES,
  finishedAt: TIMES,
  heartbeatAt: TIMES,
  activityAt: TIMES,
  extracted: NUMBERS,
  skipped: NUMBERS,
  done: NUMBERS,
  total: NUMBERS,
  page: NUMBERS,
  pageTarget: NUMBERS,
  attempts: NUMBERS,
}
const EXPECTED_TYPES: Partial<Record<MappedField, string>> = {
  id: 'text, a uuid or a whole number',
  status: 'text or an enum',
  error: 'text',
  startedAt: 'a time, text or a number',
  finishedAt: 'a time, text or a number',
  heartbeatAt: 'a time, text or a number',
  activityAt: 'a time, text or a number',
}

/** The fields that are mapped, with the user's names for their columns. */
export function mappedFields(mapping: Mapping): [MappedField, string][] {
  return Object.entries(mapping.columns).filter(
    (entry): entry is [MappedField, string] => entry[1] !== undefined,
  )
}

/** Those of them that may be written. Owner and heartbeat are only cleared, when it goes back in line. */
export function writableFields({ statusValues }: Mapping): readonly MappedField[] {
  const canBeRequeued = [statusValues.interrupted, statusValues.queued, statusValues.planned].some(
    ({ length }) => length > 0,
  )
  return canBeRequeued
    ? ['status', 'finishedAt', 'error', 'owner', 'heartbeatAt']
    : ['status', 'finishedAt', 'error']
}

/** Whether the user's functions want to see whole rows. */
export function hasUserFunctions({ checkpoint, outputDir, alive, onResume }: Mapping): boolean {
  return [checkpoint, outputDir, alive, onResume].some((one) => one !== undefined)
}

/** Finds each mapped column among those of the table. A `UsageError` says all that is wrong with them at once. */
export function matchColumns<C extends CatalogueColumn>(
  mapping: Mapping,
  table: string,
  found: readonly C[],
  isSame: (name: string, other: string) => boolean,
): Map<MappedField, C> {
  const matched = new Map<MappedField, C>()
  const mistakes: string[] = []
  for (const [field, name] of mappedFields(mapping)) {
    const column = found.find((one) => isSame(one.name, name))
    const at = `columns.${field}`
    if (!column) {
      const hint = closest(
        name,
        found.map((one) => one.name),
      )
      mistakes.push(`${at}: there is no column ${name}${hint ? `; did you mean ${hint}?` : '.'}`)
      continue
    }
    const kinds = ALLOWED_KINDS[field]
    if (kinds && !kinds.includes(column.kind)) {
      const expected = EXPECTED_TYPES[field] ?? 'a number'
      mistakes.push(`${at}: ${column.name} is of type ${column.type}, and must be ${expected}.`)
    }
    if (column.isComputed && writableFields(mapping).includes(field)) {
      mistakes.push(`${at}: ${column.name} is computed by the database and cannot be written.`)
    }
    matched.set(field, column)
  }
  mistakes.push(...statusMistakes(mapping, matched.get('status')))
  if (mistakes.length > 0) throw mappingError(mapping, `does not fit ${table}`, mistakes)
  return matched
}

export function mappingError(
  mapping: Mapping,
  what: string,
  mistakes: readonly string[],
): UsageError {
  return new UsageError(
    [`adopted.${mapping.name} ${what}:`, ...mistakes].join(mistakes.length > 1 ? '\n- ' : ' '),
  )
}

/** A word that the enum does not have, or that is too long, can neither stand there nor be written. */
function statusMistakes({ statusValues }: Mapping, column: CatalogueColumn | undefined): string[] {
  const { name, labels = null, maxLength = null } = column ?? {}
  const mistakeOf = (value: string): string | null => {
    if (labels && findLabel(value, labels) === undefined) {
      const hint = closest(value, labels) ?? labels.join(', ')
      return `is not one of the enum's words; there is ${hint}.`
    }
    return maxLength !== null && Array.from(value).length > maxLength
      ? `is longer than the ${maxLength} characters that ${name} takes.`
      : null
  }
  return Object.entries(statusValues).flatMap(([status, of]) =>
    of.flatMap((value) => {
      const mistake = mistakeOf(value)
      return mistake === null ? [] : [`statuses.${status}: ${value} ${mistake}`]
    }),
  )
}

/** The label that is this word in some case. */
export function findLabel(value: string, labels: readonly string[]): string | undefined {
  return (
    labels.find((label) => label === value) ??
    labels.find((label) => label.toLowerCase() === value.toLowerCase())
  )
}

/** More words than any status has: then it is none, and what is found of them must do. */
const SPELLINGS_MAX = 10_000

/**
 * These words as they stand there, in whatever case. A list of them, rather than a comparison without regard to case,
 * because an index on the column helps to find these, and because databases differ in what they take for the same letter.
 */
export function spellingsOf(statusValues: readonly string[], found: readonly string[]): string[] {
  const wanted = new Set(statusValues.map((value) => value.toLowerCase()))
  return [
    ...new Set([...statusValues, ...found.filter((value) => wanted.has(value.toLowerCase()))]),
  ]
}

/**
 * All that stands in a column, each once, as `word`. With an index on it from one to the next, which takes as many steps
 * as there are words and not as there are rows.
 */
export function distinctValuesSql(table: string, column: string, isIndexed: boolean): string {
  if (!isIndexed)
    return /* sql */ `SELECT DISTINCT ${column} AS value FROM ${table} LIMIT ${SPELLINGS_MAX}`
  return /* sql */ `
    WITH RECURSIVE distinct_values (value) AS (
      SELECT min(${column}) FROM ${table}
       UNION ALL
      SELECT (SELECT min(${column}) FROM ${table} WHERE ${column} > distinct_values.value)
        FROM distinct_values WHERE distinct_values.value IS NOT NULL
    )
    SELECT value FROM distinct_values WHERE value IS NOT NULL LIMIT ${SPELLINGS_MAX}`
}

/** What is to stand in which column: a moment as a number of milliseconds, or exactly what stood there once. */
export type Assignment =
  | { readonly kind: 'timestamp'; readonly at: number }
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
    const isNull = assignment.kind !== 'timestamp' && assignment.value === null
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
  if (typeof finishedAt === 'number') assign('finishedAt', { kind: 'timestamp', at: finishedAt })
  else assignValue('finishedAt', finishedAt)
  return assigned
}

/** What a person should know about their table. */

/** From here on it matters whether the database finds the active rows by an index. */
export const MANY_ROWS = 10_000

export function noIndexWarning(table: string, status: string): string {
  return (
    `${table} has more than ${MANY_ROWS} rows and no index on ${status}: each look at it reads the whole table. ` +
    'An index would help.'
  )
}

export function timeZoneWarning(table: string, columns: readonly string[], zone: string): string {
  return (
    `${table}: times in ${columns.join(', ')} have no zone and are taken for UTC, but the database is on ${zone}. ` +
    `Write timeZone: '${zone}' if they are of that zone, or timeZone: 'UTC'.`
  )
}

export function notUniqueWarning(table: string, id: string): string {
  return `${table} has no unique index on ${id}: rows that share one are shown, but left as they are.`
}

export function readOnlyWarning(table: string, grant: string): string {
  return `${table} can be looked at, and nothing can be done to its rows: ${grant}`
}
