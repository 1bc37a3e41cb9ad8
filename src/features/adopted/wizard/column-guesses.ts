import { plainName, type ColumnType, type FoundColumn, type FoundTable } from './found-table.ts'
import type { AdoptedColumns } from '../mapping.ts'
import { nameMistake } from '../names.ts'

/** A column of the user's and what it is taken for. */
export type ColumnGuess = {
  readonly field: keyof AdoptedColumns
  readonly column: string
  readonly because: string
}

type Field = {
  readonly field: keyof AdoptedColumns
  readonly types: readonly ColumnType[]
  /** In plain names, the surest first. */
  readonly names: readonly (string | RegExp)[]
  readonly because: string
  /** These say a time or a number only if the column's type does. */
  readonly strictly?: { readonly names: readonly string[]; readonly types: readonly ColumnType[] }
}

const TIMES = ['moment', 'local', 'text', 'number'] as const satisfies ColumnType[]
const SURE_TIMES = ['moment', 'local'] as const satisfies ColumnType[]
const NUMBERS = ['number'] as const satisfies ColumnType[]
const TEXTS = ['text'] as const satisfies ColumnType[]
const LABELS = ['text', 'enum', 'uuid', 'number'] as const satisfies ColumnType[]

const COMMON: readonly Field[] = [
  {
    field: 'heartbeatAt',
    types: TIMES,
    names: [
      /^(last_)?heart_?beat(_at|_time|_ts)?$/,
      /^last_(beat|seen|ping|alive)(_at)?$/,
      'pinged_at',
      'alive_at',
      'lebenszeichen',
    ],
    because: 'beaten while somebody works on it',
  },
  {
    field: 'startedAt',
    types: TIMES,
    names: [
      /^(run_|job_|crawl_|scrape_|task_)?(started|start|begun|began|begin)_(at|on|time|ts)$/,
      'date_started',
      'claimed_at',
      'locked_at',
      'reserved_at',
      'picked_at',
      /^(created|inserted|queued|enqueued|scheduled|added)_(at|on|time|ts)$/,
      'date_created',
      /^(beginn|begonnen|gestartet|startzeit|debut|demarrage|inicio)(_(am|um|le|en|el))?$/,
      /^(date_debut|fecha_inicio|erstellt_am|cree_le|creado_en)$/,
    ],
    strictly: { names: ['started', 'start', 'start_date', 'created'], types: SURE_TIMES },
    because: 'when it began',
  },
  {
    field: 'finishedAt',
    types: TIMES,
    names: [
      /^(run_|job_|crawl_|scrape_|task_)?(finished|finish|completed|ended|end|done|stopped)_(at|on|time|ts)$/,
      'date_done',
      'date_finished',
      /^(ende|beendet|fertig|endzeit|fin|termine|terminado)(_(am|um|le|en|el))?$/,
      /^(date_fin|fecha_fin)$/,
    ],
    strictly: { names: ['finished', 'completed', 'ended', 'end_date'], types: SURE_TIMES },
    because: 'when it ended; written when it is ended',
  },
  {
    field: 'activityAt',
    types: TIMES,
    names: [
      /^last_(activity|progress)(_at)?$/,
      /^(updated|modified|changed|last_updated|last_modified)_(at|on|time|ts)$/,
    ],
    strictly: { names: ['updated', 'modified', 'last_modified'], types: SURE_TIMES },
    because: 'when anything of it last moved',
  },
  {
    field: 'error',
    types: TEXTS,
    names: [
      'error',
      'error_message',
      'last_error',
      /^(error_(text|msg|details?|reason)|fail(ure)?_(reason|message)|failure|exception|traceback)$/,
      /^(fehler|fehlermeldung|fehlertext|erreur|message_erreur|mensaje_error)$/,
    ],
    because: 'why it failed; written when it is failed',
  },
  {
    field: 'owner',
    types: LABELS,
    names: [
      /^(claimed|locked|leased|picked|processed|reserved)_by$/,
      /^(worker|runner|executor)(_id|_name)?$/,
      /^(host|hostname|node|node_name|instance_id)$/,
    ],
    because: 'who works on it',
  },
]

const OF_RUNS: readonly Field[] = [
  {
    field: 'source',
    types: LABELS,
    names: [
      /^(source|portal|site|spider|scraper|crawler|connector|feed|job|task|pipeline|workflow|dag)(_name|_key|_slug)?$/,
      /^(quelle|fuente|origen)$/,
      /^(domain|website|queue|name|type|job_type|task_type|kind)$/,
    ],
    because: 'what it is a run of',
  },
  {
    field: 'done',
    types: NUMBERS,
    names: [
      /^(done|completed|processed|finished)(_count|_items|_total|_pages)?$/,
      /^(items|pages|records|rows|urls)_(done|completed|processed)$/,
      'progress',
    ],
    because: 'how much is done',
  },
  {
    field: 'total',
    types: NUMBERS,
    names: [
      /^total(_count|_items|_pages|_records|_rows|_urls)?$/,
      /^(items|pages|records|rows|urls)_total$/,
    ],
    because: 'how much there is',
  },
  {
    field: 'extracted',
    types: NUMBERS,
    names: [
      /(^|_)(extracted|scraped|saved|inserted|imported|collected|exported|synced|fetched|downloaded)(_|$)/,
      /^(items|results|records|rows|documents|products|listings|pages)(_count|_found|_crawled|_fetched)?$/,
      /^(gefunden|anzahl|treffer|trouves|encontrados)$/,
    ],
    because: 'what it brought: it is not dead by age alone',
  },
  {
    field: 'skipped',
    types: NUMBERS,
    names: [/(^|_)(skipped|unchanged|duplicates?)(_|$)/],
    because: 'what it passed over: progress too',
  },
  {
    field: 'checkpoint',
    types: ['text', 'json', 'number', 'other'],
    names: [
      /^((last_)?checkpoint|cursor|last_cursor|bookmark|resume_(token|data|state))(_data|_json)?$/,
    ],
    because: 'where it goes on from, if anything is in it',
  },
]

const OF_TARGETS: readonly Field[] = [
  {
    field: 'page',
    types: NUMBERS,
    names: ['page_current', 'current_page', 'last_page', 'page', 'page_number', 'pages_done'],
    because: 'the last page that is done',
  },
  {
    field: 'pageTarget',
    types: NUMBERS,
    names: ['page_target', 'target_page', 'total_pages', 'pages_total', 'max_page', 'max_pages'],
    because: 'how many pages there are',
  },
  {
    field: 'attempts',
    types: NUMBERS,
    names: [/^(attempts?|tries|retries|retry_count|attempt_count)$/],
    because: 'how often it was tried',
  },
  {
    field: 'url',
    types: TEXTS,
    names: ['url', 'target_url', 'start_url', 'link', 'href'],
    because: 'where it begins',
  },
  {
    field: 'key',
    types: LABELS,
    names: ['key', 'target_key', 'slug', 'target', 'code', 'name', 'path'],
    because: 'what people call it',
  },
  {
    field: 'group',
    types: ['text', 'enum'],
    names: ['group', 'group_name', 'state', 'region', 'department', 'category', 'country', 'city'],
    because: 'a label to filter and report by',
  },
  {
    field: 'checkpoint',
    types: ['text', 'json', 'number', 'other'],
    names: [/^(checkpoint|cursor|last_cursor)(_data|_json)?$/],
    because: 'where it goes on from, if anything is in it',
  },
]

/** Columns whose names can be used in a config and in SQL. */
export function usable({ columns }: FoundTable): FoundColumn[] {
  return columns.filter(({ name }) => nameMistake(name) === null)
}

/** The key: of one column, or one that is called so. */
export function guessId(table: FoundTable): ColumnGuess | null {
  const fits = usable(table).filter(({ type }) => LABELS.some((one) => one === type))
  const key = fits.find(({ isKey }) => isKey)
  if (key) return { field: 'id', column: key.name, because: 'the primary key' }
  const named = fits.find(({ name }) =>
    /^(id|uuid|(run|job|crawl|task)_(id|uuid))$/.test(plainName(name)),
  )
  return named ? { field: 'id', column: named.name, because: 'named like one' } : null
}

/**
 * What the other columns are, by their names and types; each is taken for one thing at most. `asked`: where no name tells
 * when it began, the first time in it does.
 */
export function guessColumns(
  table: FoundTable,
  kind: 'runs' | 'targets',
  taken: readonly string[],
  asked = false,
): ColumnGuess[] {
  const free = new Map(
    usable(table)
      .filter(({ name }) => !taken.includes(name))
      .map((column) => [column.name, column]),
  )
  const guesses: ColumnGuess[] = []
  for (const field of [...COMMON, ...(kind === 'runs' ? OF_RUNS : OF_TARGETS)]) {
    const column = firstFitting(field, [...free.values()])
    if (!column) continue
    free.delete(column.name)
    guesses.push({ field: field.field, column: column.name, because: because(field, column) })
  }
  const has = (field: keyof AdoptedColumns): boolean => guesses.some((one) => one.field === field)
  if (asked && !has('startedAt') && !has('heartbeatAt')) {
    const time = [...free.values()].find(({ type }) => SURE_TIMES.some((one) => one === type))
    const because = 'a guess: the first time in it'
    if (time) guesses.push({ field: 'startedAt', column: time.name, because })
  }
  return kind === 'runs' && !has('source')
    ? [...guesses, ...subjectOf([...free.values()])]
    : guesses
}

function firstFitting(
  { types, names, strictly }: Field,
  columns: readonly FoundColumn[],
): FoundColumn | undefined {
  for (const name of names) {
    const found = columns.find((column) => types.includes(column.type) && isNamed(column, name))
    if (found) return found
  }
  return columns.find(
    (column) =>
      strictly?.types.includes(column.type) && strictly.names.some((name) => isNamed(column, name)),
  )
}

function isNamed({ name }: FoundColumn, wanted: string | RegExp): boolean {
  const plain = plainName(name)
  return typeof wanted === 'string' ? plain === wanted : wanted.test(plain)
}

function because({ field, because }: Field, { name }: FoundColumn): string {
  return field === 'startedAt' && isMakingTime(name)
    ? 'when it was made: nothing says when it began'
    : because
}

/** A row that is not marked as begun was at least made: for want of better, that is when it began. */
export function isMakingTime(name: string): boolean {
  return /^(created|inserted|queued|enqueued|scheduled|added)|_created$/.test(plainName(name))
}

const NOT_A_SUBJECT =
  /^(user|owner|tenant|account|org|organi[sz]ation|workspace|worker|parent|batch|creator|created_by|updated_by|trace|external|celery_task|process)_id$/

/** `course_id`: where one other row is named, the run is probably one of that. */
function subjectOf(columns: readonly FoundColumn[]): ColumnGuess[] {
  const subjects = columns.filter(
    ({ name, type }) =>
      LABELS.some((one) => one === type) &&
      plainName(name).endsWith('_id') &&
      !NOT_A_SUBJECT.test(plainName(name)),
  )
  if (subjects.length !== 1) return []
  const [{ name }] = subjects as [FoundColumn]
  return [{ field: 'source', column: name, because: 'what it is a run of, as far as names tell' }]
}
