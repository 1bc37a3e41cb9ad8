import { normalizeName, type ColumnType, type FoundColumn, type FoundTable } from './found-table.ts'
import type { AdoptedColumns } from '../mapping.ts'
import { identifierMistake } from '../identifiers.ts'

/** A column of the user's and what it is taken for. */
export type ColumnGuess = {
  readonly field: keyof AdoptedColumns
  readonly column: string
  readonly because: string
}

type FieldRule = {
  readonly field: keyof AdoptedColumns
  readonly types: readonly ColumnType[]
  /** In plain names, the surest first. */
  readonly names: readonly (string | RegExp)[]
  readonly because: string
  /** These say a time or a number only if the column's type does. */
  readonly strict?: { readonly names: readonly string[]; readonly types: readonly ColumnType[] }
}

const TIME_LIKE_TYPES = ['moment', 'local', 'text', 'number'] as const satisfies ColumnType[]
const TIME_TYPES = ['moment', 'local'] as const satisfies ColumnType[]
const NUMBER_TYPES = ['number'] as const satisfies ColumnType[]
const TEXT_TYPES = ['text'] as const satisfies ColumnType[]
const LABEL_TYPES = ['text', 'enum', 'uuid', 'number'] as const satisfies ColumnType[]

const COMMON_FIELDS: readonly FieldRule[] = [
  {
    field: 'heartbeatAt',
    types: TIME_LIKE_TYPES,
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
    types: TIME_LIKE_TYPES,
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
    strict: { names: ['started', 'start', 'start_date', 'created'], types: TIME_TYPES },
    because: 'when it began',
  },
  {
    field: 'finishedAt',
    types: TIME_LIKE_TYPES,
    names: [
      /^(run_|job_|crawl_|scrape_|task_)?(finished|finish|completed|ended|end|done|stopped)_(at|on|time|ts)$/,
      'date_done',
      'date_finished',
      /^(ende|beendet|fertig|endzeit|fin|termine|terminado)(_(am|um|le|en|el))?$/,
      /^(date_fin|fecha_fin)$/,
    ],
    strict: { names: ['finished', 'completed', 'ended', 'end_date'], types: TIME_TYPES },
    because: 'when it ended; written when it is ended',
  },
  {
    field: 'activityAt',
    types: TIME_LIKE_TYPES,
    names: [
      /^last_(activity|progress)(_at)?$/,
      /^(updated|modified|changed|last_updated|last_modified)_(at|on|time|ts)$/,
    ],
    strict: { names: ['updated', 'modified', 'last_modified'], types: TIME_TYPES },
    because: 'when anything of it last moved',
  },
  {
    field: 'error',
    types: TEXT_TYPES,
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
    types: LABEL_TYPES,
    names: [
      /^(claimed|locked|leased|picked|processed|reserved)_by$/,
      /^(worker|runner|executor)(_id|_name)?$/,
      /^(host|hostname|node|node_name|instance_id)$/,
    ],
    because: 'who works on it',
  },
]

const RUN_FIELDS: readonly FieldRule[] = [
  {
    field: 'source',
    types: LABEL_TYPES,
    names: [
      /^(source|portal|site|spider|scraper|crawler|connector|feed|job|task|pipeline|workflow|dag)(_name|_key|_slug)?$/,
      /^(quelle|fuente|origen)$/,
      /^(domain|website|queue|name|type|job_type|task_type|kind)$/,
    ],
    because: 'what it is a run of',
  },
  {
    field: 'done',
    types: NUMBER_TYPES,
    names: [
      /^(done|completed|processed|finished)(_count|_items|_total|_pages)?$/,
      /^(items|pages|records|rows|urls)_(done|completed|processed)$/,
      'progress',
    ],
    because: 'how much is done',
  },
  {
    field: 'total',
    types: NUMBER_TYPES,
    names: [
      /^total(_count|_items|_pages|_records|_rows|_urls)?$/,
      /^(items|pages|records|rows|urls)_total$/,
    ],
    because: 'how much there is',
  },
  {
    field: 'extracted',
    types: NUMBER_TYPES,
    names: [
      /(^|_)(extracted|scraped|saved|inserted|imported|collected|exported|synced|fetched|downloaded)(_|$)/,
      /^(items|results|records|rows|documents|products|listings|pages)(_count|_found|_crawled|_fetched)?$/,
      /^(gefunden|anzahl|treffer|trouves|encontrados)$/,
    ],
    because: 'what it brought: it is not dead by age alone',
  },
  {
    field: 'skipped',
    types: NUMBER_TYPES,
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

const TARGET_FIELDS: readonly FieldRule[] = [
  {
    field: 'page',
    types: NUMBER_TYPES,
    names: ['page_current', 'current_page', 'last_page', 'page', 'page_number', 'pages_done'],
    because: 'the last page that is done',
  },
  {
    field: 'pageTarget',
    types: NUMBER_TYPES,
    names: ['page_target', 'target_page', 'total_pages', 'pages_total', 'max_page', 'max_pages'],
    because: 'how many pages there are',
  },
  {
    field: 'attempts',
    types: NUMBER_TYPES,
    names: [/^(attempts?|tries|retries|retry_count|attempt_count)$/],
    because: 'how often it was tried',
  },
  {
    field: 'url',
    types: TEXT_TYPES,
    names: ['url', 'target_url', 'start_url', 'link', 'href'],
    because: 'where it begins',
  },
  {
    field: 'key',
    types: LABEL_TYPES,
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
export function usableColumns({ columns }: FoundTable): FoundColumn[] {
  return columns.filter(({ name }) => identifierMistake(name) === null)
}

/** The key: of one column, or one that is called so. */
export function guessId(table: FoundTable): ColumnGuess | null {
  const candidates = usableColumns(table).filter(({ type }) =>
    LABEL_TYPES.some((one) => one === type),
  )
  const key = candidates.find(({ isPrimaryKey }) => isPrimaryKey)
  if (key) return { field: 'id', column: key.name, because: 'the primary key' }
  const named = candidates.find(({ name }) =>
    /^(id|uuid|(run|job|crawl|task)_(id|uuid))$/.test(normalizeName(name)),
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
  isRequested = false,
): ColumnGuess[] {
  const free = new Map(
    usableColumns(table)
      .filter(({ name }) => !taken.includes(name))
      .map((column) => [column.name, column]),
  )
  const guesses: ColumnGuess[] = []
  for (const field of [...COMMON_FIELDS, ...(kind === 'runs' ? RUN_FIELDS : TARGET_FIELDS)]) {
    const column = findColumn(field, [...free.values()])
    if (!column) continue
    free.delete(column.name)
    guesses.push({ field: field.field, column: column.name, because: reasonFor(field, column) })
  }
  const has = (field: keyof AdoptedColumns): boolean => guesses.some((one) => one.field === field)
  if (isRequested && !has('startedAt') && !has('heartbeatAt')) {
    const time = [...free.values()].find(({ type }) => TIME_TYPES.some((one) => one === type))
    const because = 'a guess: the first time in it'
    if (time) guesses.push({ field: 'startedAt', column: time.name, because })
  }
  return kind === 'runs' && !has('source')
    ? [...guesses, ...guessSource([...free.values()])]
    : guesses
}

function findColumn(
  { types, names, strict }: FieldRule,
  columns: readonly FoundColumn[],
): FoundColumn | undefined {
  for (const name of names) {
    const found = columns.find((column) => types.includes(column.type) && matchesName(column, name))
    if (found) return found
  }
  return columns.find(
    (column) =>
      strict?.types.includes(column.type) && strict.names.some((name) => matchesName(column, name)),
  )
}

function matchesName({ name }: FoundColumn, wanted: string | RegExp): boolean {
  const normalized = normalizeName(name)
  return typeof wanted === 'string' ? normalized === wanted : wanted.test(normalized)
}

function reasonFor({ field, because }: FieldRule, { name }: FoundColumn): string {
  return field === 'startedAt' && isCreationTime(name)
    ? 'when it was made: nothing says when it began'
    : because
}

/** A row that is not marked as begun was at least made: for want of better, that is when it began. */
export function isCreationTime(name: string): boolean {
  return /^(created|inserted|queued|enqueued|scheduled|added)|_created$/.test(normalizeName(name))
}

const NOT_A_SOURCE =
  /^(user|owner|tenant|account|org|organi[sz]ation|workspace|worker|parent|batch|creator|created_by|updated_by|trace|external|celery_task|process)_id$/

/** `course_id`: where one other row is named, the run is probably one of that. */
function guessSource(columns: readonly FoundColumn[]): ColumnGuess[] {
  const candidates = columns.filter(
    ({ name, type }) =>
      LABEL_TYPES.some((one) => one === type) &&
      normalizeName(name).endsWith('_id') &&
      !NOT_A_SOURCE.test(normalizeName(name)),
  )
  if (candidates.length !== 1) return []
  const [{ name }] = candidates as [FoundColumn]
  return [{ field: 'source', column: name, because: 'what it is a run of, as far as names tell' }]
}
