import type { ColumnGuess } from './column-guesses.ts'
import { plainName, type FoundColumn, type FoundTable } from './found-table.ts'
import type { WordGuess } from './propose.ts'
import { isSurelyWork } from './status-meanings.ts'

/** Why a table looks like work that somebody does. */
export type WorkSign = {
  readonly text: string
  /** Orders and customers do not have it. */
  readonly isStrong: boolean
}

const WORK_NAME =
  /(^|_)(runs?|jobs?|crawls?|crawl(er|ing)|scrapes?|scrap(er|ing)|tasks?|executions?|imports?|exports?|syncs?|batch(es)?|pipelines?|workflows?|ingestions?|backfills?|harvests?|builds?|deployments?|migrations?|targets?|processes|laeufe|abrufe?|abfragen?|taches?|tareas?|ejecuciones)(_|$)/

export function signsFor(
  table: FoundTable,
  columns: readonly ColumnGuess[],
  words: readonly WordGuess[],
): WorkSign[] {
  const signs: WorkSign[] = []
  const sign = (text: string, isStrong: boolean): void => void signs.push({ text, isStrong })
  const column = (...fields: ColumnGuess['field'][]): string | undefined =>
    columns.find(({ field }) => fields.includes(field))?.column

  if (WORK_NAME.test(plainName(table.table))) sign('its name says so', true)
  const work = words.find(
    ({ meaning, word, count }) => meaning === 'active' && isFound(word, count),
  )
  if (work) sign(`it has the word ${JSON.stringify(work.word)}`, true)
  const has = (meaning: WordGuess['meaning']): boolean =>
    words.some((one) => one.meaning === meaning && !one.isGuess)
  if (has('succeeded') && has('failed')) sign('it succeeds or fails', false)
  const beat = column('heartbeatAt')
  if (beat !== undefined) sign(`${beat} is beaten`, true)
  const owner = column('owner')
  if (owner !== undefined) sign(`${owner} says who works on it`, true)
  const ends = column('finishedAt')
  if (ends !== undefined && column('startedAt') !== undefined) sign('it begins and ends', false)
  const error = column('error')
  if (error !== undefined) sign(`${error} says why it failed`, false)
  const counter = column('extracted', 'skipped', 'done', 'page', 'checkpoint')
  if (counter !== undefined) sign(`${counter} says how far it is`, false)
  return signs
}

function isFound(word: string, count: number | null): boolean {
  return count !== null && isSurelyWork(word)
}

const OTHER_NAME =
  /(^|_)(users?|customers?|orders?|payments?|invoices?|subscriptions?|accounts?|tickets?|issues?|posts?|products?|members?|messages?|emails?|leads?|bookings?|shipments?)$/
const OTHER_WORD =
  /^(shipped|delivered|paid|unpaid|refunded|draft|published|approved|rejected|confirmed|invited|banned|verified|inactive|past_due|trialing|in_review|backlog|archived)$/
const OTHER_COLUMN =
  /^(email|password(_hash|_digest)?|amount|price|currency|customer_id|assignee(_id)?|assigned_to|due_(date|at|on)|shipping_address|cart_id)$/

/** What speaks against it, in sentences. */
export function signsAgainst(table: FoundTable, status: FoundColumn): string[] {
  const against: string[] = []
  if (OTHER_NAME.test(plainName(table.table)))
    against.push('its name says that it is something else')
  const word = status.words?.find(({ word }) => OTHER_WORD.test(plainName(word)))
  if (word) against.push(`${JSON.stringify(word.word)} is not what becomes of a run`)
  const column = table.columns.find(({ name }) => OTHER_COLUMN.test(plainName(name)))
  if (column) against.push(`runs have no ${plainName(column.name)}`)
  return against
}

/** By schema, or by the table's name. */
const QUEUES: readonly (readonly [RegExp, string])[] = [
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
export function whoseTable({ schema, table }: FoundTable): string | null {
  const plain = table.toLowerCase()
  const full = schema === null ? plain : `${schema.toLowerCase()}.${plain}`
  return QUEUES.find(([name]) => name.test(full) || name.test(plain))?.[1] ?? null
}
