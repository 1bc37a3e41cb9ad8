import { guessColumns, guessId, isMakingTime, usable, type ColumnGuess } from './column-guesses.ts'
import { plainName, tableName, type FoundColumn, type FoundTable } from './found-table.ts'
import type { AdoptedColumns, AdoptedOptions, AdoptedStatuses, UserRow } from '../mapping.ts'
import { tableMistake } from '../names.ts'
import { isCalledStatus, knownWords, statusOf } from './status-column.ts'
import { isPending, isSurelyWork, meaningOf, spelledLike, type Meaning } from './status-meanings.ts'
import { signsAgainst, signsFor, whoseTable } from './run-table-score.ts'

/** How a table could be adopted, and all that speaks for it. */
export type Proposal = {
  readonly table: string
  readonly kind: 'runs' | 'targets'
  /** False: it may well be something else. */
  readonly isSure: boolean
  readonly signs: readonly string[]
  readonly doubts: readonly string[]
  readonly columns: readonly ColumnGuess[]
  /** Those that nothing was made of. */
  readonly unused: readonly string[]
  readonly words: readonly WordGuess[]
  /** What a person should look at before it is used. */
  readonly notes: readonly string[]
  /** As it goes into a config. */
  readonly options: AdoptedOptions
  /** How a word for what a person ended would be spelled, where none is there and any may be; null: one is, or none may. */
  readonly cancelWord: string | null
  /** Columns with the path of a file, or of a folder: `options` has functions for them. */
  readonly paths: Paths
}

export type Paths = { readonly checkpoint: string | null; readonly outputDir: string | null }

export type WordGuess = {
  readonly meaning: Meaning
  readonly word: string
  /** Rows that have it; null: it was not found, only allowed or guessed. */
  readonly count: number | null
  readonly isGuess: boolean
  readonly because: string
}

export type PassedOver = {
  readonly table: string
  readonly because: string
  /** It has nothing like a status: nobody would have thought of it. */
  readonly isFar: boolean
}

/** Beats of hand-made tables are slow, and nothing fences off a worker that was taken for dead. */
const LEASE = '60m'

export type Asked = {
  readonly kind?: Proposal['kind'] | undefined
  /** By name, so that doubt is said but does not decide: there is something to edit, if nothing better. */
  readonly asked?: boolean | undefined
  /** The column that is the status. */
  readonly status?: string | undefined
}

/** How this table could be adopted, or why not. */
export function propose(table: FoundTable, how: Asked = {}): Proposal | PassedOver {
  const { kind: wanted, asked = false } = how
  const name = tableName(table)
  const hasStatus = table.columns.some(isCalledStatus)
  const not = (because: string): PassedOver => ({ table: name, because, isFar: !hasStatus })
  if (tableMistake(name) !== null) return not('its name cannot be used: plain letters are needed')
  if (table.unread !== null) return not(`its rows could not be read: ${table.unread}`)
  const whose = whoseTable(table)
  if (whose !== null && !asked) return not(`it is ${whose}'s own table, which looks after itself`)
  const status = statusOf(table, { kind: wanted ?? 'runs', asked, named: how.status })
  if ('because' in status) return not(status.because)
  const id = guessId(table)
  if (!id) return not('it has no primary key of one column')

  const kind = wanted ?? kindOf(table, status.column)
  const guesses: ColumnGuess[] = [
    id,
    { field: 'status', column: status.column.name, because: 'its words' },
    ...guessColumns(table, kind, [id.column, status.column.name], asked),
  ]
  const columns = guesses.toSorted((a, b) => FIELDS.indexOf(a.field) - FIELDS.indexOf(b.field))
  const words = wordsOf(status.column, { kind, columns, asked })
  const lacking = whatLacks(kind, columns, words)
  if (lacking !== null && !asked) return not(lacking)

  const signs = signsFor(table, columns, words)
  const doubts = [...(lacking === null ? [] : [lacking]), ...signsAgainst(table, status.column)]
  const isSure = doubts.length === 0 && signs.length > 1 && signs.some(({ isStrong }) => isStrong)
  if (!isSure && !asked && signs.length < 2) return not('nothing else in it looks like work')
  const hasCheckpoint = columns.some(({ field }) => field === 'checkpoint')
  const paths = {
    checkpoint: hasCheckpoint ? null : pathColumn(table, /^checkpoint_(path|file)(_?name)?$/),
    outputDir: pathColumn(table, /^output_(dir|folder|path|directory)$/),
  }
  return {
    table: name,
    kind,
    isSure,
    signs: signs.map(({ text }) => text),
    doubts: doubts.length > 0 || isSure ? doubts : ['little in it looks like work'],
    columns,
    unused: unusedIn(table, columns, paths),
    words,
    notes: notesOn(table, status.column, { kind, columns, words }),
    options: optionsOf(name, { kind, columns, words }, paths),
    cancelWord: cancelWordFor(status.column, kind, words),
    paths,
  }
}

function unusedIn(table: FoundTable, columns: readonly ColumnGuess[], paths: Paths): string[] {
  const used = new Set([...columns.map(({ column }) => column), paths.checkpoint, paths.outputDir])
  return table.columns.map(({ name }) => name).filter((name) => !used.has(name))
}

function cancelWordFor(
  status: FoundColumn,
  kind: Proposal['kind'],
  words: readonly WordGuess[],
): string | null {
  const isThere = words.some(({ meaning }) => meaning === 'cancelled')
  if (kind === 'targets' || isThere || status.allowed !== null) return null
  const spelling = knownWords(status).map(({ word }) => word)
  return spelledLike('cancelled', spelling)
}

/** What it is, when it was, who has it, how far it is. */
const FIELDS: readonly (keyof AdoptedColumns)[] = [
  'id',
  'source',
  'key',
  'group',
  'url',
  'status',
  'startedAt',
  'heartbeatAt',
  'activityAt',
  'finishedAt',
  'owner',
  'attempts',
  'page',
  'pageTarget',
  'done',
  'total',
  'extracted',
  'skipped',
  'checkpoint',
  'error',
]

/** In the order of a life. */
const MEANINGS: readonly Meaning[] = [
  'queued',
  'planned',
  'active',
  'interrupted',
  'succeeded',
  'failed',
  'cancelled',
  'abandoned',
  'stuck',
  'parked',
]

type Guesses = {
  readonly kind: Proposal['kind']
  readonly columns: readonly ColumnGuess[]
  readonly words: readonly WordGuess[]
}

/** A row with a page or a beat that somebody claims is one of many parts of a whole. */
function kindOf(table: FoundTable, status: FoundColumn): Proposal['kind'] {
  const names = usable(table).map(({ name }) => plainName(name))
  const has = (wanted: RegExp): boolean => names.some((name) => wanted.test(name))
  const waits = knownWords(status).some(
    ({ word }) => meaningOf(word, 'targets')?.meaning === 'planned',
  )
  const isPaged = has(/^(page_current|current_page|last_page|page_number|page)$/)
  const isClaimed = has(/^(claimed|locked|leased|reserved)_(by|at)$|heart_?beat/)
  const isCalledSo = /(^|_)targets?$/.test(plainName(table.table))
  return waits && isClaimed && (isPaged || isCalledSo) ? 'targets' : 'runs'
}

function wordsOf(
  status: FoundColumn,
  {
    kind,
    columns,
    asked,
  }: { kind: Proposal['kind']; columns: readonly ColumnGuess[]; asked: boolean },
): WordGuess[] {
  const known = knownWords(status)
  const begins = columns.find(({ field }) => field === 'startedAt')
  const isBegunAtOnce = kind === 'runs' && begins !== undefined && isMakingTime(begins.column)
  const isProcessed = known.some(({ word }) => isSurelyWork(word))
  const guesses = known.flatMap(({ word, count }) => {
    const guess = meaningOf(word, kind)
    if (!guess) return []
    // Without a time of its own for the start, what is pending may be at work as well.
    const isActive = isPending(word) && isBegunAtOnce && isProcessed
    const [meaning, rank] = isActive ? (['active', LAST] as const) : [guess.meaning, guess.rank]
    return [{ rank, guess: { meaning, word, count, isGuess: false, because: howKnown(count) } }]
  })
  const ordered = guesses.toSorted((a, b) => a.rank - b.rank).map(({ guess }) => guess)
  const spelling = known.map(({ word }) => word)
  const needed: readonly Meaning[] = kind === 'runs' ? ['active', 'failed'] : ['active', 'planned']
  // What a check forbids is not guessed, but for what no mapping can do without: no row has it, so it does nothing.
  const must = asked ? needed.filter((meaning) => meaning !== 'failed') : []
  const guessed = status.allowed === null ? needed : must
  const missing = guessed
    .filter((meaning) => !ordered.some((one) => one.meaning === meaning))
    .map((meaning): WordGuess => ({
      meaning,
      word: spelledLike(USUAL[meaning]!, spelling),
      count: null,
      isGuess: true,
      because: 'a guess: no row has such a word now',
    }))
  const all: WordGuess[] = [...ordered, ...missing]
  return all.toSorted((a, b) => MEANINGS.indexOf(a.meaning) - MEANINGS.indexOf(b.meaning))
}

/** Of the words for one thing, never the one to write. */
const LAST = Infinity

const USUAL: Partial<Record<Meaning, string>> = {
  active: 'running',
  failed: 'failed',
  planned: 'planned',
}

function howKnown(count: number | null): string {
  if (count === null) return 'allowed, in no row now'
  return count === 1 ? 'in 1 row' : `in ${count} rows`
}

/** What no mapping can do without; null: nothing. */
function whatLacks(
  kind: Proposal['kind'],
  columns: readonly ColumnGuess[],
  words: readonly WordGuess[],
): string | null {
  const has = (meaning: Meaning): boolean => words.some((one) => one.meaning === meaning)
  if (!has('active')) return 'no word in its status says that something is at work'
  if (kind === 'targets' && !has('planned')) return 'no word in its status says that a target waits'
  const isTimed = columns.some(({ field }) => field === 'startedAt' || field === 'heartbeatAt')
  return isTimed ? null : 'it has no time to judge by: when a row began, or was last beaten'
}

function notesOn(table: FoundTable, status: FoundColumn, guesses: Guesses): string[] {
  const { kind, columns, words } = guesses
  const notes: string[] = []
  const left = knownWords(status).filter(({ word }) => !words.some((one) => one.word === word))
  const list = left.slice(0, 5).map(({ word }) => JSON.stringify(word.slice(0, 60)))
  const others = list.length > 0 ? `, or is it one of ${list.join(', ')}` : ''
  for (const { meaning, word } of words.filter(({ isGuess }) => isGuess))
    notes.push(
      `${JSON.stringify(word)} for ${meaning} is a guess: is it what your program writes${others}?`,
    )
  const pending = words.find(({ meaning, word }) => meaning === 'active' && isPending(word))
  if (pending)
    notes.push(
      `${JSON.stringify(pending.word)} counts as at work. If such a row waits for its turn, move the word to queued.`,
    )
  if (left.length > 0)
    notes.push(
      `Rows that say ${list.join(', ')} count as ended. If they have not, name the word in statuses.`,
    )
  const times = columns.filter(({ field }) => field.endsWith('At')).map(({ column }) => column)
  if (table.columns.some(({ name, type }) => type === 'local' && times.includes(name)))
    notes.push('Its times have no zone and are read as UTC. If they are local, set timeZone.')
  if (columns.some(({ field }) => field === 'heartbeatAt'))
    notes.push(
      `A beat older than ${LEASE} counts as a lost worker: set lease to several times yours.`,
    )
  else
    notes.push(
      kind === 'runs'
        ? 'It has no heartbeat: rows are judged by age, progress and checkpoint.'
        : 'It has no heartbeat: without `alive` in the config nothing is taken from anybody.',
    )
  return notes
}

function optionsOf(
  table: string,
  { kind, columns, words }: Guesses,
  { checkpoint, outputDir }: Paths,
): AdoptedOptions {
  const statuses = Object.groupBy(words, ({ meaning }) => meaning)
  const said = MEANINGS.flatMap((meaning) => {
    const [first, ...others] = (statuses[meaning] ?? []).map(({ word }) => word)
    return first === undefined ? [] : [[meaning, others.length > 0 ? [first, ...others] : first]]
  })
  const beats = columns.some(({ field }) => field === 'heartbeatAt')
  return {
    table,
    ...(kind === 'targets' && { kind }),
    columns: Object.fromEntries(
      columns.map(({ field, column }) => [field, column]),
    ) as AdoptedColumns,
    statuses: Object.fromEntries(said) as AdoptedStatuses,
    ...(checkpoint !== null && { checkpoint: pathIn(checkpoint) }),
    ...(outputDir !== null && { outputDir: pathIn(outputDir) }),
    ...(beats && { policy: { lease: LEASE } }),
  }
}

function pathIn(column: string): (row: UserRow) => string | null {
  return (row) => {
    const path = row[column]
    return typeof path === 'string' ? path : null
  }
}

function pathColumn(table: FoundTable, named: RegExp): string | null {
  const found = usable(table).find(
    ({ name, type }) => type === 'text' && named.test(plainName(name)),
  )
  return found?.name ?? null
}
