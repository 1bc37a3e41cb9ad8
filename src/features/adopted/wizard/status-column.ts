import { usable } from './column-guesses.ts'
import { plainName, WORDS_MAX, type FoundColumn, type FoundTable } from './found-table.ts'
import { nameMistake } from '../names.ts'
import { meaningOf } from './status-meanings.ts'

const STATUS_NAME =
  /^(?!http|email|payment|marital|order_)([a-z0-9]+_)*(status|state|phase|stage|zustand|statut|etat|estado|stato)$/

/** Whether it is called like a status. */
export function isCalledStatus({ name }: Pick<FoundColumn, 'name'>): boolean {
  return STATUS_NAME.test(plainName(name))
}

/** Whether words stand in it that could be those of a status, whatever it is called. */
export function mayHoldWords({ name, type, isKey }: FoundColumn): boolean {
  const isText = type === 'text' || type === 'enum' || type === 'other'
  return isText && !isKey && nameMistake(name) === null
}

/** Whether a column may hold the status, by its name and type: only then its words are worth a look. */
export function mayHoldStatus(column: FoundColumn): boolean {
  return mayHoldWords(column) && isCalledStatus(column)
}

export type StatusAsked = {
  readonly kind: 'runs' | 'targets'
  /** The table was asked for by name: whatever may be its status is better than none. */
  readonly asked: boolean
  /** The column, as somebody said. */
  readonly named: string | undefined
}

type Status = { readonly column: FoundColumn } | { readonly because: string }

/** The column whose words say that something is at work; or why there is none. */
export function statusOf(table: FoundTable, { kind, asked, named }: StatusAsked): Status {
  if (named !== undefined) return statusNamed(table, named)
  const sure = statusByName(table, kind)
  if ('column' in sure || !asked) return sure
  return statusByWords(table, kind) ?? sure
}

function statusNamed(table: FoundTable, named: string): Status {
  const columns = usable(table)
  const column =
    columns.find(({ name }) => name === named) ??
    columns.find(({ name }) => name.toLowerCase() === named.toLowerCase())
  if (!column) {
    const names = columns.map(({ name }) => name).join(', ')
    return { because: `it has no column ${JSON.stringify(named)} that can be used, only ${names}` }
  }
  return mayHoldWords(column) ? { column } : { because: `its ${column.name} is not made of words` }
}

function statusByName(table: FoundTable, kind: StatusAsked['kind']): Status {
  const named = usable(table).filter(isCalledStatus)
  if (named.length === 0) return { because: 'it has no column like a status' }
  const texts = named.filter(mayHoldStatus)
  if (texts.length === 0) return { because: `its ${named[0]!.name} is not made of words` }
  const active = (column: FoundColumn): number =>
    knownWords(column).filter(({ word }) => meaningOf(word, kind)?.meaning === 'active').length
  const [best] = texts
    .filter(hasFewWords)
    .toSorted(
      (a, b) => active(b) - active(a) || plainName(a.name).length - plainName(b.name).length,
    )
  if (!best) return { because: `its ${texts[0]!.name} has too many different words` }
  if (active(best) > 0) return { column: best }
  // A table where nobody is at work just now still shows by how its runs ended what it is.
  const ended = knownWords(best).filter(({ word }) => meaningOf(word, kind) !== null)
  const isOpen = best.allowed === null
  if (isOpen && (ended.length > 1 || knownWords(best).length === 0)) return { column: best }
  return { because: `no word in its ${best.name} says that something is at work` }
}

/** Of a table that somebody named: the column with the most words that are known, or else with few that come again. */
function statusByWords(table: FoundTable, kind: StatusAsked['kind']): Status | null {
  const known = (column: FoundColumn): number =>
    knownWords(column).filter(({ word }) => meaningOf(word, kind) !== null).length
  const isLikely = (column: FoundColumn): boolean =>
    known(column) > 0 || isCalledStatus(column) || column.allowed !== null || comesAgain(column)
  const [best] = usable(table)
    .filter((column) => mayHoldWords(column) && hasFewWords(column) && isLikely(column))
    .toSorted(
      (a, b) =>
        known(b) - known(a) ||
        Number(isCalledStatus(b)) - Number(isCalledStatus(a)) ||
        knownWords(a).length - knownWords(b).length,
    )
  return best ? { column: best } : null
}

function hasFewWords({ words }: FoundColumn): boolean {
  return (words?.length ?? 0) <= WORDS_MAX
}

/** A word that stands in many rows is a kind of something; a name stands in one. */
function comesAgain({ words }: FoundColumn): boolean {
  const rows = (words ?? []).reduce((sum, { count }) => sum + count, 0)
  return rows >= 2 * (words?.length ?? 0) && rows > 0
}

/** What stands in it, and what may. */
export function knownWords({
  words,
  allowed,
}: FoundColumn): { word: string; count: number | null }[] {
  const found = words ?? []
  const more = (allowed ?? []).filter((word) => !found.some((one) => one.word === word))
  return [...found, ...more.map((word) => ({ word, count: null }))]
}
