import { identifierMistake } from '../identifiers.ts'
import type { AdoptedColumns, Mapping } from '../mapping.ts'

/** A table from the database's catalogue, with the values of the columns that may be its status. */
export type FoundTable = {
  /** Null: on PostgreSQL the search path finds it; SQLite has no schemas. */
  readonly schema: string | null
  readonly table: string
  readonly columns: readonly FoundColumn[]
  /** Why the status values could not be read; null if they were. */
  readonly readError: string | null
}

export type FoundColumn = {
  readonly name: string
  readonly type: ColumnType
  /** The primary key consists of this column alone. */
  readonly isPrimaryKey: boolean
  /** The values that an enum or a CHECK allows; null: any. */
  readonly allowedValues: readonly string[] | null
  /** The values in its rows, most frequent first; null where they were not read. */
  readonly values: readonly ValueCount[] | null
}

export type ValueCount = {
  readonly value: string
  readonly count: number
  /** Of these rows: how many have a start, an end, an error. Only for values that say nothing themselves. */
  readonly rows?: RowFacts
}

export type RowFacts = {
  readonly started: number
  readonly ended: number
  readonly failed: number
}

/** `timestamptz` has a time zone, `timestamp` has none. Text and numbers may hold times too. */
export type ColumnType =
  | 'text'
  | 'enum'
  | 'number'
  | 'timestamptz'
  | 'timestamp'
  | 'uuid'
  | 'json'
  | 'boolean'
  | 'other'

type Field = keyof AdoptedColumns

/** A column and the field that it is proposed for. */
export type ColumnGuess = {
  readonly field: Field
  readonly column: string
  readonly because: string
}

/** What each field holds, in the order in which a config lists them. */
const FIELDS: Readonly<Record<Field, string>> = {
  id: 'the primary key',
  source: 'what the run is for',
  key: 'the name of the target',
  group: 'a label to filter and count by',
  url: 'where the target starts',
  status: 'its values',
  createdAt: 'its age until it starts',
  startedAt: 'when it started',
  heartbeatAt: 'updated while a worker is alive',
  activityAt: 'when the row last changed',
  finishedAt: 'when it ended; written when it ends',
  owner: 'the worker',
  host: 'where its process runs',
  pid: 'its process, which is looked for on that host',
  attempts: 'how often it was tried',
  page: 'the last page done',
  pageTarget: 'how many pages there are',
  done: 'how much is done',
  total: 'how much there is in all',
  extracted: 'what it saved; counts as progress',
  skipped: 'what it skipped; counts as progress',
  checkpoint: 'where it continues, if not empty',
  error: 'why it failed; written when it fails',
}

const FIELD_ORDER = Object.keys(FIELDS)

const TYPES = {
  time: ['timestamptz', 'timestamp'],
  timeLike: ['timestamptz', 'timestamp', 'text', 'number'],
  number: ['number'],
  text: ['text'],
  group: ['text', 'enum'],
  label: ['text', 'enum', 'uuid', 'number'],
  cursor: ['text', 'json', 'number', 'other'],
} satisfies Record<string, readonly ColumnType[]>

type Rule = {
  readonly kind: string | undefined
  readonly field: Field
  readonly types: readonly ColumnType[]
  readonly names: readonly RegExp[]
}

/**
 * One rule per line: the kind of table, the field, the types, and patterns of the normalized name, best first. Earlier
 * rules choose first, and a column serves one field. Names that are usual for flags too need a type of time.
 */
const RULES = String.raw`
  any     heartbeatAt timeLike (last_)?heart_?beat(_at|_time|_ts)? last_(beat|seen|ping|alive)(_at)? pinged_at alive_at lebenszeichen
  any     startedAt   timeLike ((run|job|crawl|scrape|task)_)?(started|start|begun|began|begin)_(at|on|time|ts) date_started claimed_at locked_at reserved_at picked_at
  any     startedAt   timeLike (beginn|begonnen|gestartet|startzeit|debut|demarrage|inicio)(_(am|um|le|en|el))? date_debut|fecha_inicio
  any     startedAt   time     started|start|start_date
  any     startedAt   timeLike (created|inserted|queued|enqueued|scheduled|added)_(at|on|time|ts) date_created erstellt_am|cree_le|creado_en
  any     startedAt   time     created
  any     createdAt   timeLike (created|inserted|queued|enqueued|added|submitted|requested)_(at|on|time|ts) date_(created|queued) erstellt_am|cree_le|creado_en
  any     createdAt   time     created|queued
  any     finishedAt  timeLike ((run|job|crawl|scrape|task)_)?(finished|finish|completed|ended|end|done|stopped)_(at|on|time|ts) date_done date_finished
  any     finishedAt  timeLike (ende|beendet|fertig|endzeit|fin|termine|terminado)(_(am|um|le|en|el))? date_fin|fecha_fin
  any     finishedAt  time     finished|completed|ended|end_date
  any     activityAt  timeLike last_(activity|progress)(_at)? (updated|modified|changed|last_updated|last_modified)_(at|on|time|ts)
  any     activityAt  time     updated|modified|last_modified
  any     error       text     error error_message last_error error_(text|msg|details?|reason)|fail(ure)?_(reason|message)|failure|exception|traceback
  any     error       text     fehler|fehlermeldung|fehlertext|erreur|message_erreur|mensaje_error
  any     pid         number   ((worker|process|os|crawler|job|run)_)?pid process_id
  any     host        label    ((worker|process|crawler|job|run)_)?(host|hostname|host_name) machine(_name)?|server(_name)?|node(_name)?
  any     owner       label    (claimed|locked|leased|picked|processed|reserved)_by (worker|runner|executor)(_id|_name)? host|hostname|node|node_name|instance_id
  runs    source      label    (source|portal|site|spider|scraper|crawler|connector|feed|job|task|pipeline|workflow|dag)(_name|_key|_slug)?
  runs    source      label    quelle|fuente|origen domain|website|queue|name|type|job_type|task_type|kind
  runs    done        number   (done|completed|processed|finished)(_count|_items|_total|_pages)? (items|pages|records|rows|urls)_(done|completed|processed) progress
  runs    total       number   total(_(items|pages|records|rows|urls|links|products|documents|listings|results|courses|targets|tasks|steps))?(_count)? total_count (items|pages|records|rows|urls|links|products|documents|listings|results|courses|targets|tasks|steps)_(total|expected|planned|in_total) (expected|planned)(_(items|pages|records|rows|urls|links|products|documents|listings|results|courses|targets|tasks|steps|total))?(_count)?
  runs    total       number   (num|number_of|count_of)_(items|pages|records|rows|urls|links|products|documents|listings|results|courses|targets|tasks|steps) total_?to_?(do|crawl|scrape|process) gesamt|gesamtzahl|insgesamt
  runs    extracted   number   (.*_)?(extracted|scraped|saved|inserted|imported|collected|exported|synced|fetched|downloaded)(_.*)?
  runs    extracted   number   (items|results|records|rows|documents|products|listings|pages)(_count|_found|_crawled|_fetched)? gefunden|anzahl|treffer|trouves|encontrados
  runs    skipped     number   (.*_)?(skipped|unchanged|duplicates?)(_.*)?
  runs    checkpoint  cursor   ((last_)?checkpoint|cursor|last_cursor|bookmark|resume_(token|data|state))(_data|_json)?
  targets page        number   page_current current_page last_page page page_number pages_done
  targets pageTarget  number   page_target target_page total_pages pages_total max_page max_pages expected_pages pages_expected
  targets attempts    number   attempts?|tries|retries|retry_count|attempt_count
  targets url         text     url target_url start_url link href
  targets key         label    key target_key slug target code name path
  targets group       group    group group_name state region department category country city
  targets checkpoint  cursor   (checkpoint|cursor|last_cursor)(_data|_json)?
`
  .trim()
  .split('\n')
  .map((line): Rule => {
    const [kind, field, types, ...names] = line.trim().split(/\s+/)
    return {
      kind,
      field: field as Field,
      types: TYPES[types as keyof typeof TYPES],
      names: names.map((name) => new RegExp(`^(?:${name})$`)),
    }
  })

/** `startedAt`, `Started At` and `started_at` become the same. */
export function normalizeName(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
}

/** The table's name in a config. */
export function qualifiedName({ schema, table }: Pick<FoundTable, 'schema' | 'table'>): string {
  return schema === null ? table : `${schema}.${table}`
}

/** Columns whose names can be used in a config and in SQL. */
export function usableColumns({ columns }: FoundTable): FoundColumn[] {
  return columns.filter(({ name }) => identifierMistake(name) === null)
}

/** Returns the first column with such a type and name. */
export function findColumn(
  columns: readonly FoundColumn[],
  types: readonly ColumnType[],
  pattern: RegExp,
): string | null {
  const matches = ({ name, type }: FoundColumn): boolean =>
    types.includes(type) && pattern.test(normalizeName(name))
  return columns.find(matches)?.name ?? null
}

/** Returns the column that a field is probably in, whatever the others are. */
export function findField(columns: readonly FoundColumn[], field: Field): string | null {
  const rules = RULES.filter((rule) => rule.field === field && rule.kind !== 'targets')
  const found = rules.flatMap(({ types, names }) =>
    names.map((name) => findColumn(columns, types, name)),
  )
  return found.find((column) => column !== null) ?? null
}

/** The primary key if it is one column, else a column named like an id. */
export function guessId(table: FoundTable): ColumnGuess | null {
  const columns = usableColumns(table)
  const key = findColumn(
    columns.filter(({ isPrimaryKey }) => isPrimaryKey),
    TYPES.label,
    /^/,
  )
  if (key !== null) return { field: 'id', column: key, because: FIELDS.id }
  const named = findColumn(columns, TYPES.label, /^(id|uuid|(run|job|crawl|task)_(id|uuid))$/)
  return named === null ? null : { field: 'id', column: named, because: 'its name' }
}

type GuessOptions = {
  readonly kind: Mapping['kind']
  readonly id: ColumnGuess
  readonly status: string
  /** Without a column named like a start, takes the first time. */
  readonly isRequested: boolean
}

/** Returns the columns by their names and types, each used for at most one field, in the order of the config. */
export function guessColumns(table: FoundTable, options: GuessOptions): ColumnGuess[] {
  const { kind, id, status, isRequested } = options
  const guesses: ColumnGuess[] = [id, { field: 'status', column: status, because: FIELDS.status }]
  const has = (field: Field): boolean => guesses.some((one) => one.field === field)
  const free = (): FoundColumn[] =>
    usableColumns(table).filter(({ name }) => !guesses.some(({ column }) => column === name))
  const add = (field: Field, column: string | null | undefined, because: string): void => {
    if (column) guesses.push({ field, column, because })
  }
  for (const { field, types, names, kind: ruleKind } of RULES) {
    if (has(field) || (ruleKind !== 'any' && ruleKind !== kind)) continue
    // A host alone shows nothing; it may name the owner.
    if (field === 'host' && !has('pid')) continue
    const column = names.map((name) => findColumn(free(), types, name)).find((one) => one !== null)
    const isCreation = field === 'startedAt' && column && isCreationTime(column)
    add(
      field,
      column,
      isCreation ? 'when it was created: no column holds its start' : FIELDS[field],
    )
  }
  const total = guesses.findIndex(({ field }) => field === 'total')
  // Taken for the total, a count that grows with the work would show a run with results as one with nothing done.
  if (total >= 0 && !has('done') && !has('extracted') && mayCountResults(guesses[total]!))
    guesses[total] = {
      field: 'extracted',
      column: guesses[total]!.column,
      because: 'what it saved, as no column holds what is done',
    }
  if (isRequested && !has('startedAt') && !has('heartbeatAt'))
    add('startedAt', findColumn(free(), TYPES.time, /^/), 'a guess: the first time column')
  if (kind === 'runs' && !has('source'))
    add('source', foreignKey(free()), 'what the run is for, by its name')
  const isUsed = ({ field }: ColumnGuess): boolean => field !== 'pid' || has('host')
  return guesses
    .filter(isUsed)
    .toSorted((a, b) => FIELD_ORDER.indexOf(a.field) - FIELD_ORDER.indexOf(b.field))
}

const UNITS_OF_WORK = /expected|planned|_to_|todo|pages|urls|links|courses|targets|tasks|steps/

/** A total by its name, which may as well be what was saved so far: `total`, `total_items`. */
export function mayCountResults({ column }: ColumnGuess): boolean {
  const name = normalizeName(column)
  const isTotal = RULES.some(
    ({ field, names }) => field === 'total' && names.some((one) => one.test(name)),
  )
  return isTotal && !UNITS_OF_WORK.test(name)
}

/** Stands in for the start of a row that has no column for it. */
export function isCreationTime(column: string): boolean {
  return /^(created|inserted|queued|enqueued|scheduled|added)|_created$/.test(normalizeName(column))
}

const FOREIGN_KEY =
  /^(?!(user|owner|tenant|account|org|organi[sz]ation|workspace|worker|parent|batch|creator|created_by|updated_by|trace|external|celery_task|process)_id$).*_id$/

/** A single foreign key such as `course_id` probably names what the run is for. */
function foreignKey(columns: readonly FoundColumn[]): string | null {
  const found = findColumn(columns, TYPES.label, FOREIGN_KEY)
  const others = columns.filter(({ name }) => name !== found)
  return findColumn(others, TYPES.label, FOREIGN_KEY) === null ? found : null
}
