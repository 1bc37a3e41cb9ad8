import { tableNameMistake } from '../identifiers.ts'
import type {
  AdoptedColumns,
  AdoptedOptions,
  AdoptedStatuses,
  StatusValue,
  UserRow,
} from '../mapping.ts'
import {
  findColumn,
  guessColumns,
  guessId,
  mayCountResults,
  normalizeName,
  qualifiedName,
  usableColumns,
  type ColumnGuess,
  type FoundColumn,
  type FoundTable,
} from './columns.ts'
import { isFlag } from './plain-statuses.ts'
import {
  findStatusColumn,
  guessStatus,
  hasStatusName,
  isPending,
  isPlain,
  isUnambiguouslyActive,
  knownValues,
  guessStatuses,
  matchCase,
  noActiveNumber,
  type StatusGuess,
  type StatusKey,
} from './statuses.ts'

/** How a table could be adopted, and the evidence for it. */
export type Proposal = {
  readonly table: string
  readonly kind: 'runs' | 'targets'
  /** False: it may be something else. */
  readonly isSure: boolean
  readonly reasons: readonly string[]
  readonly doubts: readonly string[]
  readonly columns: readonly ColumnGuess[]
  /** Columns without a field. */
  readonly unused: readonly string[]
  readonly statuses: readonly StatusGuess[]
  /** What to check before the mapping is used. */
  readonly notes: readonly string[]
  /** The mapping for the config. */
  readonly options: AdoptedOptions
  /** A value for cancelled runs, if there is none and the column allows any. */
  readonly cancelledValue: string | null
  /** Columns with the path of a file or folder; `options` has functions for them. */
  readonly paths: Paths
}

export type Paths = { readonly checkpoint: string | null; readonly outputDir: string | null }

export type RejectedTable = {
  readonly table: string
  readonly because: string
  readonly hasNoStatus: boolean
}

export type ProposeOptions = {
  readonly kind?: Proposal['kind'] | undefined
  /** The user named the table: it is proposed in spite of doubts, so that there is a mapping to edit. */
  readonly isRequested?: boolean | undefined
  /** The status column. */
  readonly status?: string | undefined
}

/** Hand-made heartbeats are slow, and the table has no fence against a worker that is presumed dead. */
const PROPOSED_LEASE = '60m'

/** Proposes a mapping for a table, or returns why there is none. */
export function propose(table: FoundTable, options: ProposeOptions = {}): Proposal | RejectedTable {
  const { isRequested = false } = options
  const name = qualifiedName(table)
  const hasNoStatus = !table.columns.some(hasStatusName)
  const reject = (because: string): RejectedTable => ({ table: name, because, hasNoStatus })
  if (tableNameMistake(name) !== null)
    return reject('its name cannot be used: only plain letters, digits, _ and $ can')
  if (table.readError !== null) return reject(`its rows could not be read: ${table.readError}`)
  const queue = knownQueueOf(table)
  if (queue !== null && !isRequested)
    return reject(`it belongs to ${queue}, which recovers its own jobs`)
  const request = { kind: options.kind ?? 'runs', isRequested, columnName: options.status }
  const found = findStatusColumn(table, request)
  if ('because' in found) return reject(found.because)
  const status = found.column
  const id = guessId(table)
  if (!id) return reject('it has no primary key of one column')

  const kind = options.kind ?? guessKind(table, status)
  const columns = guessColumns(table, { kind, id, status: status.name, isRequested })
  const statuses = guessStatuses(status, { kind, columns, isRequested })
  const guesses = { table, status, kind, columns, statuses }
  const missing = missingPart(guesses)
  if (missing !== null && !isRequested) return reject(missing)
  if (isPlain(status) && !means(statuses, 'active')) return reject(noActiveNumber(status))

  const { reasons, against, isStrong } = weigh(guesses)
  const doubts = missing === null ? against : [missing, ...against]
  const isSure = doubts.length === 0 && reasons.length > 1 && isStrong
  if (!isSure && !isRequested && reasons.length < 2)
    return reject('nothing else in it suggests work')
  const pathIn = (name: RegExp): string | null => findColumn(usableColumns(table), ['text'], name)
  const paths = {
    checkpoint: holds(columns, 'checkpoint') ? null : pathIn(/^checkpoint_(path|file)(_?name)?$/),
    outputDir: pathIn(/^output_(dir|folder|path|directory)$/),
  }
  const used = new Set([...columns.map(({ column }) => column), paths.checkpoint, paths.outputDir])
  return {
    table: name,
    kind,
    isSure,
    reasons,
    doubts: doubts.length > 0 || isSure ? doubts : ['little in it suggests work'],
    columns,
    unused: table.columns.map((column) => column.name).filter((column) => !used.has(column)),
    statuses,
    notes: notesFor(guesses),
    options: toOptions(name, guesses, paths),
    cancelledValue: cancelledValueFor(guesses),
    paths,
  }
}

type Guesses = {
  readonly table: FoundTable
  readonly status: FoundColumn
  readonly kind: Proposal['kind']
  readonly columns: readonly ColumnGuess[]
  readonly statuses: readonly StatusGuess[]
}

const WORK_NAME =
  /(^|_)(runs?|jobs?|crawls?|crawl(er|ing)|scrapes?|scrap(er|ing)|tasks?|executions?|imports?|exports?|syncs?|batch(es)?|pipelines?|workflows?|ingestions?|backfills?|harvests?|builds?|deployments?|migrations?|targets?|processes|laeufe|abrufe?|abfragen?|taches?|tareas?|ejecuciones)(_|$)/
const OTHER_NAME =
  /(^|_)(users?|customers?|orders?|payments?|invoices?|subscriptions?|accounts?|tickets?|issues?|posts?|products?|members?|messages?|emails?|leads?|bookings?|shipments?)$/
const OTHER_STATUS =
  /^(shipped|delivered|paid|unpaid|refunded|draft|published|approved|rejected|confirmed|invited|banned|verified|inactive|past_due|trialing|in_review|backlog|archived)$/
const OTHER_COLUMN =
  /^(email|password(_hash|_digest)?|amount|price|currency|customer_id|assignee(_id)?|assigned_to|due_(date|at|on)|shipping_address|cart_id)$/

/** What speaks for and against work. Strong evidence is rare in tables of orders, customers and the like. */
function weigh({ table, status, columns, statuses }: Guesses) {
  const name = normalizeName(table.table)
  const columnNames = table.columns.map((column) => normalizeName(column.name))
  const column = (says: string, ...fields: ColumnGuess['field'][]): string | undefined => {
    const found = columns.find(({ field }) => fields.includes(field))
    return found && `${found.column} ${says}`
  }
  const found = statuses.filter(({ isGuess }) => !isGuess)
  const active = found.find(
    ({ meaning, value, count }) =>
      meaning === 'active' && count !== null && isUnambiguouslyActive(String(value)),
  )
  const otherStatus = status.values?.find(({ value }) => OTHER_STATUS.test(normalizeName(value)))
  const otherColumn = columnNames.find((one) => OTHER_COLUMN.test(one))
  const strong = [
    WORK_NAME.test(name) && 'its name suggests work',
    isFlag(status) && `${status.name} tells active rows`,
    active && `it has the status ${JSON.stringify(active.value)}`,
    column('is a heartbeat', 'heartbeatAt'),
    column('names the worker', 'owner', 'pid'),
  ]
  const weak = [
    means(found, 'succeeded', 'failed') && 'it has statuses for success and failure',
    holds(columns, 'startedAt', 'finishedAt') && 'it has a start and an end',
    column('holds the error', 'error'),
    column('shows progress', 'extracted', 'skipped', 'done', 'page', 'checkpoint'),
  ]
  const against = [
    OTHER_NAME.test(name) && 'its name suggests something else',
    otherStatus && `${JSON.stringify(otherStatus.value)} is not a status of a run`,
    otherColumn && `runs have no ${otherColumn}`,
    status.type === 'number' &&
      !isFlag(status) &&
      `only its rows show what the numbers of its ${status.name} mean`,
  ]
  const isFact = (fact: string | false | undefined) => typeof fact === 'string'
  return {
    isStrong: strong.some(isFact),
    reasons: [...strong, ...weak].filter(isFact),
    against: against.filter(isFact),
  }
}

/** Whether there is a column for each field. */
function holds(columns: readonly ColumnGuess[], ...fields: ColumnGuess['field'][]): boolean {
  return fields.every((wanted) => columns.some(({ field }) => field === wanted))
}

/** Whether there is a value for each meaning. */
function means(statuses: readonly StatusGuess[], ...meanings: StatusKey[]): boolean {
  return meanings.every((wanted) => statuses.some(({ meaning }) => meaning === wanted))
}

/** By schema, or by the table's name. */
const KNOWN_QUEUES: readonly (readonly [RegExp, string])[] = [
  [/^pgboss\./, 'pg-boss'],
  [/^graphile_worker\./, 'Graphile Worker'],
  [/^hangfire\./, 'Hangfire'],
  [/^oban_/, 'Oban'],
  [/^solid_queue_/, 'Solid Queue'],
  [/^good_job/, 'GoodJob'],
  [/^delayed_jobs$/, 'Delayed Job'],
  [/^que_/, 'Que'],
  [/^river_/, 'River'],
  [/^procrastinate_/, 'Procrastinate'],
  [/^celery_|^django_celery_/, 'Celery'],
  [/^apscheduler_/, 'APScheduler'],
  [/^(dag_run|task_instance(_history)?)$/, 'Airflow'],
  [/^_prisma_migrations$/, 'Prisma'],
  [/^failed_jobs$|^job_batches$/, 'Laravel'],
]

/** The job queue that owns this table. A queue recovers its own jobs, so its tables must not be adopted. */
function knownQueueOf({ schema, table }: FoundTable): string | null {
  const tableName = table.toLowerCase()
  const full = schema === null ? tableName : `${schema.toLowerCase()}.${tableName}`
  return KNOWN_QUEUES.find(([name]) => name.test(full) || name.test(tableName))?.[1] ?? null
}

/** A row that waits, is claimed, and has a page is a target, not a run. */
function guessKind(table: FoundTable, status: FoundColumn): Proposal['kind'] {
  const has = (wanted: RegExp): boolean =>
    usableColumns(table).some(({ name }) => wanted.test(normalizeName(name)))
  const hasPlanned = knownValues(status).some(
    ({ value }) => guessStatus(value, 'targets')?.meaning === 'planned',
  )
  const isPaged = has(/^(page_current|current_page|last_page|page_number|page)$/)
  const isClaimed = has(/^(claimed|locked|leased|reserved)_(by|at)$|heart_?beat/)
  const isNamedTargets = /(^|_)targets?$/.test(normalizeName(table.table))
  return hasPlanned && isClaimed && (isPaged || isNamedTargets) ? 'targets' : 'runs'
}

/** What a valid mapping lacks; null if it is complete. */
function missingPart({ kind, columns, statuses }: Guesses): string | null {
  if (!means(statuses, 'active')) return 'no value of its status means that work is in progress'
  if (kind === 'targets' && !means(statuses, 'planned'))
    return 'no value of its status means that a target waits'
  return holds(columns, 'startedAt') || holds(columns, 'heartbeatAt')
    ? null
    : 'it has no time: neither a start nor a heartbeat'
}

function cancelledValueFor({ status, kind, statuses }: Guesses): string | null {
  const isOpen = status.allowedValues === null && !isPlain(status)
  if (kind === 'targets' || means(statuses, 'cancelled') || !isOpen) return null
  const values = knownValues(status).map(({ value }) => value)
  return matchCase('cancelled', values)
}

function notesFor({ table, status, kind, columns, statuses }: Guesses): string[] {
  const notes: string[] = []
  const unmapped = knownValues(status).filter(
    ({ value }) => !statuses.some((one) => plainText(one.value) === plainText(value)),
  )
  const list = unmapped.slice(0, 5).map(({ value }) => JSON.stringify(value.slice(0, 60)))
  const others = list.length > 0 ? `, or is it one of ${list.join(', ')}` : ''
  if (isPlain(status) && !isFlag(status))
    notes.push(
      `What the numbers of ${status.name} mean is read from its rows: compare it with the enum of your program.`,
    )
  for (const { meaning, value } of isPlain(status) ? [] : statuses.filter(({ isGuess }) => isGuess))
    notes.push(
      `${JSON.stringify(value)} for ${meaning} is a guess: does your program write it${others}?`,
    )
  const pending = statuses.find(
    ({ meaning, value }) => meaning === 'active' && isPending(String(value)),
  )
  if (pending)
    notes.push(
      `${JSON.stringify(pending.value)} counts as active. If such rows wait for their turn, move it to queued.`,
    )
  if (unmapped.length > 0)
    notes.push(
      `Rows with ${list.join(', ')} count as ended. If they have not, add the value to statuses.`,
    )
  const results = columns.find((one) => one.field === 'extracted' && mayCountResults(one))
  if (results)
    notes.push(
      `${results.column} counts as what was saved, because no column holds what is done. If it is how much there is in all, move it to total.`,
    )
  const total = columns.find(({ field }) => field === 'total')
  if (total && !holds(columns, 'done'))
    notes.push(`No column holds what is done of ${total.column}: progress is shown as unknown.`)
  const times = columns.filter(({ field }) => field.endsWith('At')).map(({ column }) => column)
  if (table.columns.some(({ name, type }) => type === 'timestamp' && times.includes(name)))
    notes.push('Its times have no time zone and are read as UTC. If they are local, set timeZone.')
  if (holds(columns, 'heartbeatAt'))
    notes.push(
      `A worker is lost when its heartbeat is older than ${PROPOSED_LEASE}: set lease to several times your interval.`,
    )
  else if (kind === 'runs')
    notes.push(
      `It has no heartbeat: rows are assessed by ${holds(columns, 'pid') ? 'process, ' : ''}age, progress and checkpoint.`,
    )
  else notes.push('It has no heartbeat: without `alive` in the config no target is recovered.')
  return notes
}

/** SQLite stores booleans as numbers. */
function plainText(value: StatusValue): string {
  return typeof value === 'boolean' || /^(true|false)$/.test(String(value))
    ? String(Number(String(value) === 'true'))
    : String(value)
}

function toOptions(
  table: string,
  { kind, columns, statuses }: Guesses,
  paths: Paths,
): AdoptedOptions {
  const byMeaning = Map.groupBy(statuses, ({ meaning }) => meaning)
  const values = [...byMeaning].map(([meaning, all]) => [
    meaning,
    all.length > 1 ? all.map(({ value }) => value) : all[0]!.value,
  ])
  const { checkpoint, outputDir } = paths
  return {
    table,
    ...(kind === 'targets' && { kind }),
    columns: Object.fromEntries(
      columns.map(({ field, column }) => [field, column]),
    ) as AdoptedColumns,
    statuses: Object.fromEntries(values) as AdoptedStatuses,
    ...(checkpoint !== null && { checkpoint: readPath(checkpoint) }),
    ...(outputDir !== null && { outputDir: readPath(outputDir) }),
    ...(holds(columns, 'heartbeatAt') && { policy: { lease: PROPOSED_LEASE } }),
  }
}

function readPath(column: string): (row: UserRow) => string | null {
  return (row) => {
    const path = row[column]
    return typeof path === 'string' ? path : null
  }
}
