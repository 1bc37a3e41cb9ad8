import { closest } from '../../../core/model/closest.ts'
import { UsageError } from '../../../core/model/errors.ts'
import type { AdoptedColumns, Mapping } from '../mapping.ts'

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
  const mistakeOf = (word: string): string | null => {
    if (labels && findLabel(word, labels) === undefined) {
      const hint = closest(word, labels) ?? labels.join(', ')
      return `is not one of the enum's words; there is ${hint}.`
    }
    return maxLength !== null && Array.from(word).length > maxLength
      ? `is longer than the ${maxLength} characters that ${name} takes.`
      : null
  }
  return Object.entries(statusValues).flatMap(([status, of]) =>
    of.flatMap((word) => {
      const mistake = mistakeOf(word)
      return mistake === null ? [] : [`statuses.${status}: ${word} ${mistake}`]
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
  const wanted = new Set(statusValues.map((word) => word.toLowerCase()))
  return [...new Set([...statusValues, ...found.filter((word) => wanted.has(word.toLowerCase()))])]
}

/**
 * All that stands in a column, each once, as `word`. With an index on it from one to the next, which takes as many steps
 * as there are words and not as there are rows.
 */
export function distinctValuesSql(table: string, column: string, isIndexed: boolean): string {
  if (!isIndexed)
    return /* sql */ `SELECT DISTINCT ${column} AS word FROM ${table} LIMIT ${SPELLINGS_MAX}`
  return /* sql */ `
    WITH RECURSIVE spelled (word) AS (
      SELECT min(${column}) FROM ${table}
       UNION ALL
      SELECT (SELECT min(${column}) FROM ${table} WHERE ${column} > spelled.word)
        FROM spelled WHERE spelled.word IS NOT NULL
    )
    SELECT word FROM spelled WHERE word IS NOT NULL LIMIT ${SPELLINGS_MAX}`
}
