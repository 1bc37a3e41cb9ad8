import { tableNameMistake } from '../identifiers.ts'
import type { AdoptedColumns, AdoptedOptions, AdoptedStatuses, UserRow } from '../mapping.ts'
import {
  findPathColumn,
  guessColumns,
  guessId,
  normalizeName,
  qualifiedName,
  usableColumns,
  type ColumnGuess,
  type FoundColumn,
  type FoundTable,
} from './columns.ts'
import {
  findStatusColumn,
  guessStatus,
  hasStatusName,
  isPending,
  isUnambiguouslyActive,
  knownValues,
  guessStatuses,
  matchCase,
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

  const evidence = EVIDENCE.flatMap(({ weight, find }) => {
    const text = find(guesses)
    return text === null ? [] : [{ weight, text }]
  })
  const reasons = evidence.filter(({ weight }) => weight !== 'against')
  const against = evidence.filter(({ weight }) => weight === 'against').map(({ text }) => text)
  const doubts = missing === null ? against : [missing, ...against]
  const hasStrongReason = reasons.some(({ weight }) => weight === 'strong')
  const isSure = doubts.length === 0 && reasons.length > 1 && hasStrongReason
  if (!isSure && !isRequested && reasons.length < 2)
    return reject('nothing else in it suggests work')
  const hasCheckpoint = columns.some(({ field }) => field === 'checkpoint')
  const paths = {
    checkpoint: hasCheckpoint ? null : findPathColumn(table, /^checkpoint_(path|file)(_?name)?$/),
    outputDir: findPathColumn(table, /^output_(dir|folder|path|directory)$/),
  }
  const used = new Set([...columns.map(({ column }) => column), paths.checkpoint, paths.outputDir])
  return {
    table: name,
    kind,
    isSure,
    reasons: reasons.map(({ text }) => text),
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

type Evidence = {
  /** Strong evidence is rare in tables of orders, customers and the like. */
  readonly weight: 'strong' | 'weak' | 'against'
  readonly find: (guesses: Guesses) => string | null
}

const EVIDENCE: readonly Evidence[] = [
  {
    weight: 'strong',
    find: ({ table }) =>
      WORK_NAME.test(normalizeName(table.table)) ? 'its name suggests work' : null,
  },
  {
    weight: 'strong',
    find: ({ statuses }) => {
      const active = statuses.find(
        ({ meaning, value, count }) =>
          meaning === 'active' && count !== null && isUnambiguouslyActive(value),
      )
      return active ? `it has the status ${JSON.stringify(active.value)}` : null
    },
  },
  {
    weight: 'weak',
    find: ({ statuses }) => {
      const has = (meaning: StatusKey): boolean =>
        statuses.some((one) => one.meaning === meaning && !one.isGuess)
      return has('succeeded') && has('failed') ? 'it has statuses for success and failure' : null
    },
  },
  { weight: 'strong', find: columnEvidence(['heartbeatAt'], 'is a heartbeat') },
  { weight: 'strong', find: columnEvidence(['owner'], 'names the worker') },
  {
    weight: 'weak',
    find: ({ columns }) =>
      columns.some(({ field }) => field === 'startedAt') &&
      columns.some(({ field }) => field === 'finishedAt')
        ? 'it has a start and an end'
        : null,
  },
  { weight: 'weak', find: columnEvidence(['error'], 'holds the error') },
  {
    weight: 'weak',
    find: columnEvidence(['extracted', 'skipped', 'done', 'page', 'checkpoint'], 'shows progress'),
  },
  {
    weight: 'against',
    find: ({ table }) =>
      OTHER_NAME.test(normalizeName(table.table)) ? 'its name suggests something else' : null,
  },
  {
    weight: 'against',
    find: ({ status }) => {
      const found = status.values?.find(({ value }) => OTHER_STATUS.test(normalizeName(value)))
      return found ? `${JSON.stringify(found.value)} is not a status of a run` : null
    },
  },
  {
    weight: 'against',
    find: ({ table }) => {
      const column = table.columns.find(({ name }) => OTHER_COLUMN.test(normalizeName(name)))
      return column ? `runs have no ${normalizeName(column.name)}` : null
    },
  },
]

function columnEvidence(fields: readonly ColumnGuess['field'][], says: string): Evidence['find'] {
  return ({ columns }) => {
    const found = columns.find(({ field }) => fields.includes(field))
    return found ? `${found.column} ${says}` : null
  }
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
  const names = usableColumns(table).map(({ name }) => normalizeName(name))
  const has = (wanted: RegExp): boolean => names.some((name) => wanted.test(name))
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
  const has = (meaning: StatusKey): boolean => statuses.some((one) => one.meaning === meaning)
  if (!has('active')) return 'no value of its status means that work is in progress'
  if (kind === 'targets' && !has('planned'))
    return 'no value of its status means that a target waits'
  const isTimed = columns.some(({ field }) => field === 'startedAt' || field === 'heartbeatAt')
  return isTimed ? null : 'it has no time to judge by: neither a start nor a heartbeat'
}

function cancelledValueFor({ status, kind, statuses }: Guesses): string | null {
  const hasOne = statuses.some(({ meaning }) => meaning === 'cancelled')
  if (kind === 'targets' || hasOne || status.allowedValues !== null) return null
  return matchCase(
    'cancelled',
    knownValues(status).map(({ value }) => value),
  )
}

function notesFor({ table, status, kind, columns, statuses }: Guesses): string[] {
  const notes: string[] = []
  const unmapped = knownValues(status).filter(
    ({ value }) => !statuses.some((one) => one.value === value),
  )
  const list = unmapped.slice(0, 5).map(({ value }) => JSON.stringify(value.slice(0, 60)))
  const others = list.length > 0 ? `, or is it one of ${list.join(', ')}` : ''
  for (const { meaning, value } of statuses.filter(({ isGuess }) => isGuess))
    notes.push(
      `${JSON.stringify(value)} for ${meaning} is a guess: does your program write it${others}?`,
    )
  const pending = statuses.find(({ meaning, value }) => meaning === 'active' && isPending(value))
  if (pending)
    notes.push(
      `${JSON.stringify(pending.value)} counts as active. If such rows wait for their turn, move it to queued.`,
    )
  if (unmapped.length > 0)
    notes.push(
      `Rows with ${list.join(', ')} count as ended. If they have not, add the value to statuses.`,
    )
  const times = columns.filter(({ field }) => field.endsWith('At')).map(({ column }) => column)
  if (table.columns.some(({ name, type }) => type === 'timestamp' && times.includes(name)))
    notes.push('Its times have no time zone and are read as UTC. If they are local, set timeZone.')
  if (columns.some(({ field }) => field === 'heartbeatAt'))
    notes.push(
      `A worker is lost when its heartbeat is older than ${PROPOSED_LEASE}: set lease to several times your interval.`,
    )
  else if (kind === 'runs')
    notes.push('It has no heartbeat: rows are judged by age, progress and checkpoint.')
  else notes.push('It has no heartbeat: without `alive` in the config no target is taken back.')
  return notes
}

function toOptions(
  table: string,
  { kind, columns, statuses }: Guesses,
  paths: Paths,
): AdoptedOptions {
  const byMeaning = Map.groupBy(statuses, ({ meaning }) => meaning)
  const values = [...byMeaning].map(([meaning, all]) => {
    const [first, ...others] = all.map(({ value }) => value)
    return [meaning, others.length > 0 ? [first, ...others] : first]
  })
  const { checkpoint, outputDir } = paths
  const hasHeartbeat = columns.some(({ field }) => field === 'heartbeatAt')
  return {
    table,
    ...(kind === 'targets' && { kind }),
    columns: Object.fromEntries(
      columns.map(({ field, column }) => [field, column]),
    ) as AdoptedColumns,
    statuses: Object.fromEntries(values) as AdoptedStatuses,
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
