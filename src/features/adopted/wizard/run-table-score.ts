import type { ColumnGuess } from './column-guesses.ts'
import { normalizeName, type FoundColumn, type FoundTable } from './found-table.ts'
import type { StatusGuess } from './propose.ts'
import { isUnambiguouslyActive } from './status-meanings.ts'

/** Why a table looks like work that somebody does. */
export type WorkReason = {
  readonly text: string
  /** Orders and customers do not have it. */
  readonly isStrong: boolean
}

const WORK_NAME =
  /(^|_)(runs?|jobs?|crawls?|crawl(er|ing)|scrapes?|scrap(er|ing)|tasks?|executions?|imports?|exports?|syncs?|batch(es)?|pipelines?|workflows?|ingestions?|backfills?|harvests?|builds?|deployments?|migrations?|targets?|processes|laeufe|abrufe?|abfragen?|taches?|tareas?|ejecuciones)(_|$)/

export function reasonsFor(
  table: FoundTable,
  columns: readonly ColumnGuess[],
  statuses: readonly StatusGuess[],
): WorkReason[] {
  const reasons: WorkReason[] = []
  const addReason = (text: string, isStrong: boolean): void => void reasons.push({ text, isStrong })
  const column = (...fields: ColumnGuess['field'][]): string | undefined =>
    columns.find(({ field }) => fields.includes(field))?.column

  if (WORK_NAME.test(normalizeName(table.table))) addReason('its name says so', true)
  const work = statuses.find(
    ({ meaning, word, count }) => meaning === 'active' && isFoundActive(word, count),
  )
  if (work) addReason(`it has the word ${JSON.stringify(work.word)}`, true)
  const has = (meaning: StatusGuess['meaning']): boolean =>
    statuses.some((one) => one.meaning === meaning && !one.isGuess)
  if (has('succeeded') && has('failed')) addReason('it succeeds or fails', false)
  const heartbeat = column('heartbeatAt')
  if (heartbeat !== undefined) addReason(`${heartbeat} is beaten`, true)
  const owner = column('owner')
  if (owner !== undefined) addReason(`${owner} says who works on it`, true)
  const ends = column('finishedAt')
  if (ends !== undefined && column('startedAt') !== undefined)
    addReason('it begins and ends', false)
  const error = column('error')
  if (error !== undefined) addReason(`${error} says why it failed`, false)
  const counter = column('extracted', 'skipped', 'done', 'page', 'checkpoint')
  if (counter !== undefined) addReason(`${counter} says how far it is`, false)
  return reasons
}

function isFoundActive(word: string, count: number | null): boolean {
  return count !== null && isUnambiguouslyActive(word)
}

const NON_WORK_NAME =
  /(^|_)(users?|customers?|orders?|payments?|invoices?|subscriptions?|accounts?|tickets?|issues?|posts?|products?|members?|messages?|emails?|leads?|bookings?|shipments?)$/
const NON_WORK_STATUS =
  /^(shipped|delivered|paid|unpaid|refunded|draft|published|approved|rejected|confirmed|invited|banned|verified|inactive|past_due|trialing|in_review|backlog|archived)$/
const NON_WORK_COLUMN =
  /^(email|password(_hash|_digest)?|amount|price|currency|customer_id|assignee(_id)?|assigned_to|due_(date|at|on)|shipping_address|cart_id)$/

/** What speaks against it, in sentences. */
export function doubtsAbout(table: FoundTable, status: FoundColumn): string[] {
  const doubts: string[] = []
  if (NON_WORK_NAME.test(normalizeName(table.table)))
    doubts.push('its name says that it is something else')
  const found = status.values?.find(({ word }) => NON_WORK_STATUS.test(normalizeName(word)))
  if (found) doubts.push(`${JSON.stringify(found.word)} is not what becomes of a run`)
  const column = table.columns.find(({ name }) => NON_WORK_COLUMN.test(normalizeName(name)))
  if (column) doubts.push(`runs have no ${normalizeName(column.name)}`)
  return doubts
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

/** Tables of queues that recover their own jobs: two who do that are one too many. */
export function knownQueueOf({ schema, table }: FoundTable): string | null {
  const tableName = table.toLowerCase()
  const full = schema === null ? tableName : `${schema.toLowerCase()}.${tableName}`
  return KNOWN_QUEUES.find(([name]) => name.test(full) || name.test(tableName))?.[1] ?? null
}
