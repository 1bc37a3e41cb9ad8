import { containing } from '../../../core/store/like.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { MappedValue, Mapping, UserRow } from '../mapping.ts'
import {
  distinctValuesSql,
  spellingsOf,
  TIME_FIELDS,
  type CatalogueColumn,
  type MappedField,
  type TimeField,
} from './columns.ts'
import type { AdoptedRow, AdoptedTable, Cell, RowChange, RowCount, RowFilter } from './table.ts'
import { formatTimestamp, timeFormatFor, type RawTime, type TimeStorage } from './timestamps.ts'

/** A table as the database's catalogue describes it. */
export type Catalogue<Column extends CatalogueColumn = CatalogueColumn> = {
  /** Quoted, on PostgreSQL with its schema. */
  readonly table: string
  readonly columns: ReadonlyMap<MappedField, Column>
  /** An index lists the distinct values of the status. */
  readonly isStatusIndexed: boolean
  readonly warnings: readonly string[]
}

/** The bound values of one statement. */
export interface BoundValues {
  /** Returns the placeholder of a value. */
  bind(value: unknown): string
}

/** The parts of a statement in which the engines differ. */
export interface TableSql<Values extends BoundValues> {
  readonly table: string
  values(): Values
  /** The id as it is compared and sorted, and as it is selected. */
  readonly id: string
  readonly key: string
  readonly hasId: string
  /** The time by which rows are listed, as it is sorted, with a comma; '' if there is none. */
  readonly byTime: string
  /** The selected columns of a row. */
  columns(values: Values): string
  /** The quoted column; NULL if it is not mapped. */
  column(field: MappedField): string
  /** The exact value, which is read and compared. */
  cell(field: MappedField): string
  /** The column as it is compared with text. */
  text(field: MappedField): string
  /** Whether the column can hold this id. */
  isValidKey(key: string): boolean
  isId(key: string, values: Values, is?: '=' | '>'): string
  isText(field: MappedField, text: string, values: Values): string
  isLike(field: MappedField, pattern: string): string
  isOneOf(spellings: readonly string[], values: Values): string
  isSince(at: Millis, values: Values): string
  /** Whether the column may hold a time in this row. */
  isTime(field: TimeField, values: Values): string
  isAfter(after: NonNullable<RowFilter['after']>, values: Values): string
  /** How the column stores times; null if it has a time type, or is not mapped. */
  timeStorage(field: MappedField): TimeStorage | null
}

/** The statements that read a table, and the filters in them. */
export abstract class UserTable<Values extends BoundValues> implements AdoptedTable {
  readonly mapping: Mapping
  readonly warnings: readonly string[]
  readonly #catalogue: Catalogue
  readonly #sql: TableSql<Values>
  /** Sample values of columns where times are written as text or numbers. */
  readonly #samples = new Map<MappedField, Cell[]>()

  constructor(mapping: Mapping, catalogue: Catalogue, sql: TableSql<Values>) {
    this.mapping = mapping
    this.warnings = catalogue.warnings
    this.#catalogue = catalogue
    this.#sql = sql
  }

  abstract readonly isStale: boolean
  abstract clock(): Promise<{ now: Millis; serverStartedAt: Millis | null }>
  abstract change(row: AdoptedRow, change: RowChange): Promise<AdoptedRow | null>
  abstract delete(row: AdoptedRow): Promise<boolean>
  abstract close(): Promise<void>
  protected abstract query<Row>(name: string, text: string, values?: Values): Promise<Row[]>
  protected abstract toRow(raw: Readonly<Record<string, unknown>>): AdoptedRow

  async row(key: string): Promise<AdoptedRow | null> {
    if (!this.#sql.isValidKey(key)) return null
    const values = this.#sql.values()
    const text = /* sql */ `
      SELECT ${this.#sql.columns(values)} FROM ${this.#sql.table} WHERE ${this.#sql.isId(key, values)} LIMIT 1
    `
    const [raw] = await this.query<Record<string, unknown>>('row', text, values)
    return raw ? this.toRow(raw) : null
  }

  async rows(filter: RowFilter): Promise<AdoptedRow[]> {
    const sql = this.#sql
    const values = sql.values()
    const isOneOf = filter.statusValues && (await this.#isOneOf(filter.statusValues, values))
    const text = /* sql */ `
      SELECT ${sql.columns(values)} FROM ${sql.table}
       WHERE ${this.#conditions(filter, isOneOf, values).join(' AND ')}
       ORDER BY ${sql.byTime}${sql.id} DESC LIMIT ${values.bind(filter.limit)}
    `
    const rows = await this.query<Record<string, unknown>>('rows', text, values)
    return rows.map((raw) => this.toRow(raw))
  }

  // Sorted by the columns themselves: to parse the times of all rows takes seconds.
  async latestRows(fields: readonly TimeField[]): Promise<AdoptedRow[]> {
    const sql = this.#sql
    const mapped = fields.filter((field) => this.#catalogue.columns.has(field))
    if (mapped.length === 0) return []
    const values = sql.values()
    const columns = sql.columns(values)
    const parts = mapped.map(
      (field) => /* sql */ `
        SELECT ${columns} FROM ${sql.table}
         WHERE ${sql.id} = (SELECT ${sql.id} FROM ${sql.table} WHERE ${sql.hasId} AND ${sql.isTime(field, values)}
                             ORDER BY ${sql.column(field)} DESC LIMIT 1)`,
    )
    const text = parts.join(' UNION ALL ')
    const rows = await this.query<Record<string, unknown>>('latest', text, values)
    return rows.map((raw) => this.toRow(raw))
  }

  async counts(): Promise<RowCount[]> {
    const sql = this.#sql
    const text = /* sql */ `
      SELECT coalesce(${sql.cell('status')}, '') AS status, ${sql.cell('group')} AS "group",
             ${this.#hasError} AS has_error, count(*) AS count
        FROM ${sql.table} WHERE ${sql.hasId} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    `
    type Count = { status: Cell; group: Cell; has_error: unknown; count: unknown }
    const rows = await this.query<Count>('counts', text)
    return rows.map(({ status, group, has_error, count }) => ({
      status: String(status),
      hasError: Number(has_error) === 1,
      group: group === null ? null : String(group),
      count: Number(count),
    }))
  }

  async keys(after: string | null, limit: number): Promise<string[]> {
    const sql = this.#sql
    const values = sql.values()
    const isAfter = after !== null && sql.isValidKey(after) && sql.isId(after, values, '>')
    const text = /* sql */ `
      SELECT ${sql.key} AS key FROM ${sql.table} WHERE ${isAfter || sql.hasId}
       ORDER BY ${sql.id} LIMIT ${values.bind(limit)}
    `
    const rows = await this.query<{ key: Cell }>('keys', text, values)
    return rows.map(({ key }) => String(key))
  }

  /** A time as the column stores it: in the format of its other values. Null for a column with a time type. */
  protected async formatTime(
    { snapshot }: AdoptedRow,
    field: MappedField,
    at: Millis,
  ): Promise<RawTime | null> {
    const storage = this.#sql.timeStorage(field)
    if (storage === null) return null
    const others = TIME_FIELDS.filter((one) => this.#sql.timeStorage(one) !== null).map((one) =>
      this.#toNumber(one, snapshot[this.mapping.columns[one]!] ?? null),
    )
    const format = timeFormatFor(storage, await this.#samplesOf(field), others)
    return formatTimestamp(at, format, this.mapping.timeZone)
  }

  async #samplesOf(field: MappedField): Promise<Cell[]> {
    const known = this.#samples.get(field)
    if (known) return known
    const text = /* sql */ `
      SELECT ${this.#sql.cell(field)} AS value FROM ${this.#sql.table}
       WHERE ${this.#sql.column(field)} IS NOT NULL LIMIT 20
    `
    const rows = await this.query<{ value: Cell }>('sample', text)
    const found = rows.map(({ value }) => this.#toNumber(field, value))
    if (found.length > 0) this.#samples.set(field, found)
    return found
  }

  /** PostgreSQL's numbers are read as text. */
  #toNumber(field: MappedField, value: Cell): Cell {
    const kind = this.#catalogue.columns.get(field)?.kind
    const isNumber = kind === 'integer' || kind === 'number'
    return isNumber && value !== null ? Number(value) : value
  }

  #conditions(
    { source, orNoSource, group, search, since, after }: RowFilter,
    isOneOf: string | undefined,
    values: Values,
  ): string[] {
    const sql = this.#sql
    const conditions = [sql.hasId]
    if (isOneOf !== undefined) conditions.push(isOneOf)
    if (source !== undefined) {
      const column = sql.text('source')
      const orNone = orNoSource ? ` OR ${column} IS NULL OR ${column} = ''` : ''
      conditions.push(`(${sql.isText('source', source, values)}${orNone})`)
    }
    if (group !== undefined) conditions.push(sql.isText('group', group, values))
    if (search !== undefined) {
      const name = this.mapping.kind === 'targets' ? 'key' : 'source'
      const pattern = values.bind(containing(search))
      const tests = ([name, 'id', 'error'] as const).map((field) => sql.isLike(field, pattern))
      conditions.push(`(${tests.join(' OR ')})`)
    }
    if (since !== undefined) conditions.push(sql.isSince(since, values))
    if (after) conditions.push(sql.isAfter(after, values))
    return conditions
  }

  /** The condition for rows with one of these statuses. */
  async #isOneOf(statusValues: readonly MappedValue[], values: Values): Promise<string> {
    const conditions: string[] = []
    for (const [hasError, of] of Map.groupBy(statusValues, (one) => one.hasError)) {
      const spellings = await this.#spellings(of.map(({ value }) => value))
      const isOneOf = this.#sql.isOneOf(spellings, values)
      const isError = hasError === null ? '' : ` AND ${this.#hasError} = ${Number(hasError)}`
      conditions.push(`(${isOneOf}${isError})`)
    }
    return conditions.length > 0 ? `(${conditions.join(' OR ')})` : 'false'
  }

  /** 1 for a row with an error, if the mapping needs it to tell a failed row from a succeeded one. */
  get #hasError(): string {
    if (!this.mapping.statusValues.failed.some(({ hasError }) => hasError)) return '0'
    return `CASE WHEN coalesce(${this.#sql.cell('error')}, '') <> '' THEN 1 ELSE 0 END`
  }

  async #spellings(statusValues: readonly string[]): Promise<string[]> {
    const { columns, isStatusIndexed } = this.#catalogue
    const { labels } = columns.get('status')!
    // An enum cannot be compared with other texts.
    if (labels) return spellingsOf(statusValues, labels).filter((value) => labels.includes(value))
    const text = distinctValuesSql(this.#sql.table, this.#sql.column('status'), isStatusIndexed)
    const found = await this.query<{ value: Cell }>('statuses', text)
    const present = found.flatMap(({ value }) => (value === null ? [] : String(value)))
    return spellingsOf(statusValues, present)
  }
}

type RowParts = {
  readonly mapping: Mapping
  /** Null: not mapped, or NULL. */
  readonly cell: (field: MappedField) => Cell
  readonly timestamp: (field: TimeField) => Millis | null
  readonly hasCheckpoint: boolean
  readonly userRow: UserRow
  readonly snapshot: AdoptedRow['snapshot']
}

/** Maps the columns of a row to its fields. */
export function makeRow({
  mapping,
  cell,
  timestamp,
  hasCheckpoint,
  userRow,
  snapshot,
}: RowParts): AdoptedRow {
  const text = (field: MappedField): string | null => {
    const value = cell(field)
    return value === null ? null : String(value)
  }
  const key = text('id') ?? ''
  const error = snapshot[mapping.columns.error ?? ''] ?? ''
  return {
    key,
    status: text('status') ?? '',
    hasError: error !== '',
    source: text('source'),
    createdAt: timestamp('createdAt'),
    startedAt: timestamp('startedAt'),
    finishedAt: timestamp('finishedAt'),
    // Frameworks such as Django store no error as an empty text.
    error: text('error') || null,
    heartbeatAt: timestamp('heartbeatAt'),
    activityAt: timestamp('activityAt'),
    owner: text('owner'),
    host: text('host'),
    pid: toPid(cell('pid')),
    listedAt: timestamp('startedAt') ?? timestamp('createdAt'),
    extracted: toCount(cell('extracted')) ?? 0,
    skipped: toCount(cell('skipped')) ?? 0,
    done: toCount(cell('done')),
    total: toCount(cell('total')),
    hasCheckpoint,
    target: {
      key: text('key') ?? key,
      group: text('group'),
      url: text('url'),
      page: toCount(cell('page')) ?? 0,
      pageTarget: toCount(cell('pageTarget')),
      attempts: toCount(cell('attempts')) ?? 0,
    },
    userRow,
    snapshot,
  }
}

function toPid(cell: Cell): number | null {
  const pid = toCount(cell)
  return pid !== null && Number.isSafeInteger(pid) && pid > 0 ? pid : null
}

/** Reads a counter, also from text; null if it is not a number. */
function toCount(value: Cell): number | null {
  if (value === null || (typeof value === 'string' && value.trim() === '')) return null
  const count = Number(value)
  return Number.isFinite(count) ? count : null
}
