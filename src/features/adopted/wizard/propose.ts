import {
  guessColumns,
  guessId,
  isCreationTime,
  usableColumns,
  type ColumnGuess,
} from './column-guesses.ts'
import { normalizeName, qualifiedName, type FoundColumn, type FoundTable } from './found-table.ts'
import type { AdoptedColumns, AdoptedOptions, AdoptedStatuses, UserRow } from '../mapping.ts'
import { tableNameMistake } from '../identifiers.ts'
import { hasStatusName, knownValues, findStatusColumn } from './status-column.ts'
import {
  isPending,
  isUnambiguouslyActive,
  guessStatus,
  matchCase,
  type StatusKey,
} from './status-meanings.ts'
import { doubtsAbout, reasonsFor, knownQueueOf } from './run-table-score.ts'

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
  readonly statuses: readonly StatusGuess[]
  /** What a person should look at before it is used. */
  readonly notes: readonly string[]
  /** As it goes into a config. */
  readonly options: AdoptedOptions
  /** How a word for what a person ended would be spelled, where none is there and any may be; null: one is, or none may. */
  readonly cancelledValue: string | null
  /** Columns with the path of a file, or of a folder: `options` has functions for them. */
  readonly paths: Paths
}

export type Paths = { readonly checkpoint: string | null; readonly outputDir: string | null }

export type StatusGuess = {
  readonly meaning: StatusKey
  readonly word: string
  /** Rows that have it; null: it was not found, only allowed or guessed. */
  readonly count: number | null
  readonly isGuess: boolean
  readonly because: string
}

export type RejectedTable = {
  readonly table: string
  readonly because: string
  /** It has nothing like a status: nobody would have thought of it. */
  readonly hasNoStatus: boolean
}

/** Beats of hand-made tables are slow, and nothing fences off a worker that was taken for dead. */
const PROPOSED_LEASE = '60m'

export type ProposeOptions = {
  readonly kind?: Proposal['kind'] | undefined
  /** By name, so that doubt is said but does not decide: there is something to edit, if nothing better. */
  readonly isRequested?: boolean | undefined
  /** The column that is the status. */
  readonly status?: string | undefined
}

/** How this table could be adopted, or why not. */
export function propose(table: FoundTable, options: ProposeOptions = {}): Proposal | RejectedTable {
  const { kind: wanted, isRequested = false } = options
  const name = qualifiedName(table)
  const hasStatus = table.columns.some(hasStatusName)
  const reject = (because: string): RejectedTable => ({
    table: name,
    because,
    hasNoStatus: !hasStatus,
  })
  if (tableNameMistake(name) !== null)
    return reject('its name cannot be used: plain letters are needed')
  if (table.readError !== null) return reject(`its rows could not be read: ${table.readError}`)
  const queue = knownQueueOf(table)
  if (queue !== null && !isRequested)
    return reject(`it is ${queue}'s own table, which looks after itself`)
  const status = findStatusColumn(table, {
    kind: wanted ?? 'runs',
    isRequested,
    columnName: options.status,
  })
  if ('because' in status) return reject(status.because)
  const id = guessId(table)
  if (!id) return reject('it has no primary key of one column')

  const kind = wanted ?? guessKind(table, status.column)
  const guesses: ColumnGuess[] = [
    id,
    { field: 'status', column: status.column.name, because: 'its words' },
    ...guessColumns(table, kind, [id.column, status.column.name], isRequested),
  ]
  const columns = guesses.toSorted(
    (a, b) => FIELD_ORDER.indexOf(a.field) - FIELD_ORDER.indexOf(b.field),
  )
  const statuses = guessStatuses(status.column, { kind, columns, isRequested })
  const missing = missingPart(kind, columns, statuses)
  if (missing !== null && !isRequested) return reject(missing)

  const reasons = reasonsFor(table, columns, statuses)
  const doubts = [...(missing === null ? [] : [missing]), ...doubtsAbout(table, status.column)]
  const isSure =
    doubts.length === 0 && reasons.length > 1 && reasons.some(({ isStrong }) => isStrong)
  if (!isSure && !isRequested && reasons.length < 2)
    return reject('nothing else in it looks like work')
  const hasCheckpoint = columns.some(({ field }) => field === 'checkpoint')
  const paths = {
    checkpoint: hasCheckpoint ? null : findPathColumn(table, /^checkpoint_(path|file)(_?name)?$/),
    outputDir: findPathColumn(table, /^output_(dir|folder|path|directory)$/),
  }
  return {
    table: name,
    kind,
    isSure,
    signs: reasons.map(({ text }) => text),
    doubts: doubts.length > 0 || isSure ? doubts : ['little in it looks like work'],
    columns,
    unused: unusedIn(table, columns, paths),
    statuses,
    notes: notesFor(table, status.column, { kind, columns, statuses }),
    options: toOptions(name, { kind, columns, statuses }, paths),
    cancelledValue: cancelledValueFor(status.column, kind, statuses),
    paths,
  }
}

function unusedIn(table: FoundTable, columns: readonly ColumnGuess[], paths: Paths): string[] {
  const used = new Set([...columns.map(({ column }) => column), paths.checkpoint, paths.outputDir])
  return table.columns.map(({ name }) => name).filter((name) => !used.has(name))
}

function cancelledValueFor(
  status: FoundColumn,
  kind: Proposal['kind'],
  statuses: readonly StatusGuess[],
): string | null {
  const isThere = statuses.some(({ meaning }) => meaning === 'cancelled')
  if (kind === 'targets' || isThere || status.allowedValues !== null) return null
  const spelling = knownValues(status).map(({ word }) => word)
  return matchCase('cancelled', spelling)
}

/** What it is, when it was, who has it, how far it is. */
const FIELD_ORDER: readonly (keyof AdoptedColumns)[] = [
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
const STATUS_ORDER: readonly StatusKey[] = [
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
  readonly statuses: readonly StatusGuess[]
}

/** A row with a page or a beat that somebody claims is one of many parts of a whole. */
function guessKind(table: FoundTable, status: FoundColumn): Proposal['kind'] {
  const names = usableColumns(table).map(({ name }) => normalizeName(name))
  const has = (wanted: RegExp): boolean => names.some((name) => wanted.test(name))
  const hasWaiting = knownValues(status).some(
    ({ word }) => guessStatus(word, 'targets')?.meaning === 'planned',
  )
  const isPaged = has(/^(page_current|current_page|last_page|page_number|page)$/)
  const isClaimed = has(/^(claimed|locked|leased|reserved)_(by|at)$|heart_?beat/)
  const isNamedTargets = /(^|_)targets?$/.test(normalizeName(table.table))
  return hasWaiting && isClaimed && (isPaged || isNamedTargets) ? 'targets' : 'runs'
}

function guessStatuses(
  status: FoundColumn,
  {
    kind,
    columns,
    isRequested,
  }: { kind: Proposal['kind']; columns: readonly ColumnGuess[]; isRequested: boolean },
): StatusGuess[] {
  const known = knownValues(status)
  const startColumn = columns.find(({ field }) => field === 'startedAt')
  const startsWhenCreated =
    kind === 'runs' && startColumn !== undefined && isCreationTime(startColumn.column)
  const hasActiveValue = known.some(({ word }) => isUnambiguouslyActive(word))
  const guesses = known.flatMap(({ word, count }) => {
    const guess = guessStatus(word, kind)
    if (!guess) return []
    // Without a time of its own for the start, what is pending may be at work as well.
    const isActive = isPending(word) && startsWhenCreated && hasActiveValue
    const [meaning, rank] = isActive
      ? (['active', LAST_RANK] as const)
      : [guess.meaning, guess.rank]
    return [{ rank, guess: { meaning, word, count, isGuess: false, because: whereFound(count) } }]
  })
  const ordered = guesses.toSorted((a, b) => a.rank - b.rank).map(({ guess }) => guess)
  const spelling = known.map(({ word }) => word)
  const needed: readonly StatusKey[] =
    kind === 'runs' ? ['active', 'failed'] : ['active', 'planned']
  // What a check forbids is not guessed, but for what no mapping can do without: no row has it, so it does nothing.
  const required = isRequested ? needed.filter((meaning) => meaning !== 'failed') : []
  const guessed = status.allowedValues === null ? needed : required
  const missing = guessed
    .filter((meaning) => !ordered.some((one) => one.meaning === meaning))
    .map((meaning): StatusGuess => ({
      meaning,
      word: matchCase(DEFAULT_VALUES[meaning]!, spelling),
      count: null,
      isGuess: true,
      because: 'a guess: no row has such a word now',
    }))
  const all: StatusGuess[] = [...ordered, ...missing]
  return all.toSorted((a, b) => STATUS_ORDER.indexOf(a.meaning) - STATUS_ORDER.indexOf(b.meaning))
}

/** Of the words for one thing, never the one to write. */
const LAST_RANK = Infinity

const DEFAULT_VALUES: Partial<Record<StatusKey, string>> = {
  active: 'running',
  failed: 'failed',
  planned: 'planned',
}

function whereFound(count: number | null): string {
  if (count === null) return 'allowed, in no row now'
  return count === 1 ? 'in 1 row' : `in ${count} rows`
}

/** What no mapping can do without; null: nothing. */
function missingPart(
  kind: Proposal['kind'],
  columns: readonly ColumnGuess[],
  statuses: readonly StatusGuess[],
): string | null {
  const has = (meaning: StatusKey): boolean => statuses.some((one) => one.meaning === meaning)
  if (!has('active')) return 'no word in its status says that something is at work'
  if (kind === 'targets' && !has('planned')) return 'no word in its status says that a target waits'
  const isTimed = columns.some(({ field }) => field === 'startedAt' || field === 'heartbeatAt')
  return isTimed ? null : 'it has no time to judge by: when a row began, or was last beaten'
}

function notesFor(table: FoundTable, status: FoundColumn, guesses: Guesses): string[] {
  const { kind, columns, statuses } = guesses
  const notes: string[] = []
  const unmapped = knownValues(status).filter(
    ({ word }) => !statuses.some((one) => one.word === word),
  )
  const list = unmapped.slice(0, 5).map(({ word }) => JSON.stringify(word.slice(0, 60)))
  const others = list.length > 0 ? `, or is it one of ${list.join(', ')}` : ''
  for (const { meaning, word } of statuses.filter(({ isGuess }) => isGuess))
    notes.push(
      `${JSON.stringify(word)} for ${meaning} is a guess: is it what your program writes${others}?`,
    )
  const pending = statuses.find(({ meaning, word }) => meaning === 'active' && isPending(word))
  if (pending)
    notes.push(
      `${JSON.stringify(pending.word)} counts as at work. If such a row waits for its turn, move the word to queued.`,
    )
  if (unmapped.length > 0)
    notes.push(
      `Rows that say ${list.join(', ')} count as ended. If they have not, name the word in statuses.`,
    )
  const times = columns.filter(({ field }) => field.endsWith('At')).map(({ column }) => column)
  if (table.columns.some(({ name, type }) => type === 'local' && times.includes(name)))
    notes.push('Its times have no zone and are read as UTC. If they are local, set timeZone.')
  if (columns.some(({ field }) => field === 'heartbeatAt'))
    notes.push(
      `A beat older than ${PROPOSED_LEASE} counts as a lost worker: set lease to several times yours.`,
    )
  else
    notes.push(
      kind === 'runs'
        ? 'It has no heartbeat: rows are judged by age, progress and checkpoint.'
        : 'It has no heartbeat: without `alive` in the config nothing is taken from anybody.',
    )
  return notes
}

function toOptions(
  table: string,
  { kind, columns, statuses }: Guesses,
  { checkpoint, outputDir }: Paths,
): AdoptedOptions {
  const byStatus = Object.groupBy(statuses, ({ meaning }) => meaning)
  const entries = STATUS_ORDER.flatMap((meaning) => {
    const [first, ...others] = (byStatus[meaning] ?? []).map(({ word }) => word)
    return first === undefined ? [] : [[meaning, others.length > 0 ? [first, ...others] : first]]
  })
  const hasHeartbeat = columns.some(({ field }) => field === 'heartbeatAt')
  return {
    table,
    ...(kind === 'targets' && { kind }),
    columns: Object.fromEntries(
      columns.map(({ field, column }) => [field, column]),
    ) as AdoptedColumns,
    statuses: Object.fromEntries(entries) as AdoptedStatuses,
    ...(checkpoint !== null && { checkpoint: readPath(checkpoint) }),
    ...(outputDir !== null && { outputDir: readPath(outputDir) }),
    ...(hasHeartbeat && { policy: { lease: PROPOSED_LEASE } }),
  }
}

function readPath(column: string): (row: UserRow) => string | null {
  return (row) => {
    const path = row[column]
    return typeof path === 'string' ? path : null
  }
}

function findPathColumn(table: FoundTable, named: RegExp): string | null {
  const found = usableColumns(table).find(
    ({ name, type }) => type === 'text' && named.test(normalizeName(name)),
  )
  return found?.name ?? null
}
