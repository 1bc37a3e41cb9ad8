import { usableColumns } from './column-guesses.ts'
import { normalizeName, VALUES_MAX, type FoundColumn, type FoundTable } from './found-table.ts'
import { identifierMistake } from '../identifiers.ts'
import { guessStatus } from './status-meanings.ts'

const STATUS_NAME =
  /^(?!http|email|payment|marital|order_)([a-z0-9]+_)*(status|state|phase|stage|zustand|statut|etat|estado|stato)$/

/** Whether it is called like a status. */
export function hasStatusName({ name }: Pick<FoundColumn, 'name'>): boolean {
  return STATUS_NAME.test(normalizeName(name))
}

/** Whether words stand in it that could be those of a status, whatever it is called. */
export function canHoldStatusValues({ name, type, isPrimaryKey }: FoundColumn): boolean {
  const isText = type === 'text' || type === 'enum' || type === 'other'
  return isText && !isPrimaryKey && identifierMistake(name) === null
}

/** Whether a column may hold the status, by its name and type: only then its words are worth a look. */
export function canHoldStatus(column: FoundColumn): boolean {
  return canHoldStatusValues(column) && hasStatusName(column)
}

export type StatusRequest = {
  readonly kind: 'runs' | 'targets'
  /** The table was asked for by name: whatever may be its status is better than none. */
  readonly isRequested: boolean
  /** The column, as somebody said. */
  readonly columnName: string | undefined
}

type StatusChoice = { readonly column: FoundColumn } | { readonly because: string }

/** The column whose words say that something is at work; or why there is none. */
export function findStatusColumn(
  table: FoundTable,
  { kind, isRequested, columnName }: StatusRequest,
): StatusChoice {
  if (columnName !== undefined) return namedStatus(table, columnName)
  const byName = statusByName(table, kind)
  if ('column' in byName || !isRequested) return byName
  return statusByValues(table, kind) ?? byName
}

function namedStatus(table: FoundTable, columnName: string): StatusChoice {
  const columns = usableColumns(table)
  const column =
    columns.find(({ name }) => name === columnName) ??
    columns.find(({ name }) => name.toLowerCase() === columnName.toLowerCase())
  if (!column) {
    const names = columns.map(({ name }) => name).join(', ')
    return {
      because: `it has no column ${JSON.stringify(columnName)} that can be used, only ${names}`,
    }
  }
  return canHoldStatusValues(column)
    ? { column }
    : { because: `its ${column.name} is not made of words` }
}

function statusByName(table: FoundTable, kind: StatusRequest['kind']): StatusChoice {
  const named = usableColumns(table).filter(hasStatusName)
  if (named.length === 0) return { because: 'it has no column like a status' }
  const texts = named.filter(canHoldStatus)
  if (texts.length === 0) return { because: `its ${named[0]!.name} is not made of words` }
  const active = (column: FoundColumn): number =>
    knownValues(column).filter(({ word }) => guessStatus(word, kind)?.meaning === 'active').length
  const [best] = texts
    .filter(hasFewValues)
    .toSorted(
      (a, b) =>
        active(b) - active(a) || normalizeName(a.name).length - normalizeName(b.name).length,
    )
  if (!best) return { because: `its ${texts[0]!.name} has too many different words` }
  if (active(best) > 0) return { column: best }
  // A table where nobody is at work just now still shows by how its runs ended what it is.
  const ended = knownValues(best).filter(({ word }) => guessStatus(word, kind) !== null)
  const allowsAny = best.allowedValues === null
  if (allowsAny && (ended.length > 1 || knownValues(best).length === 0)) return { column: best }
  return { because: `no word in its ${best.name} says that something is at work` }
}

/** Of a table that somebody named: the column with the most words that are known, or else with few that come again. */
function statusByValues(table: FoundTable, kind: StatusRequest['kind']): StatusChoice | null {
  const known = (column: FoundColumn): number =>
    knownValues(column).filter(({ word }) => guessStatus(word, kind) !== null).length
  const isLikely = (column: FoundColumn): boolean =>
    known(column) > 0 ||
    hasStatusName(column) ||
    column.allowedValues !== null ||
    hasRepeatedValues(column)
  const [best] = usableColumns(table)
    .filter((column) => canHoldStatusValues(column) && hasFewValues(column) && isLikely(column))
    .toSorted(
      (a, b) =>
        known(b) - known(a) ||
        Number(hasStatusName(b)) - Number(hasStatusName(a)) ||
        knownValues(a).length - knownValues(b).length,
    )
  return best ? { column: best } : null
}

function hasFewValues({ values }: FoundColumn): boolean {
  return (values?.length ?? 0) <= VALUES_MAX
}

/** A word that stands in many rows is a kind of something; a name stands in one. */
function hasRepeatedValues({ values }: FoundColumn): boolean {
  const rows = (values ?? []).reduce((sum, { count }) => sum + count, 0)
  return rows >= 2 * (values?.length ?? 0) && rows > 0
}

/** What stands in it, and what may. */
export function knownValues({
  values,
  allowedValues,
}: FoundColumn): { word: string; count: number | null }[] {
  const found = values ?? []
  const unseen = (allowedValues ?? []).filter((word) => !found.some((one) => one.word === word))
  return [...found, ...unseen.map((word) => ({ word, count: null }))]
}
