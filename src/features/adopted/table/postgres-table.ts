import { RefusedError } from '../../../core/model/errors.ts'
import { containing } from '../../../core/store/like.ts'
import { ms } from '../../../core/store/postgres/database.ts'
import { stripNul } from '../../../core/store/postgres/strip-nul.ts'
import {
  distinctValuesSql,
  type MappedField,
  mappedFields,
  spellingsOf,
  TIME_FIELDS,
  toAssignments,
} from './columns.ts'
import { type TimeFormat, timeFormatFor, type TimeStorage } from './timestamps.ts'
import { type Cell, makeRow } from './make-row.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import type { Mapping } from '../mapping.ts'
import {
  type PostgresCatalogue,
  type PostgresColumn,
  readPostgresCatalogue,
} from './postgres-catalogue.ts'
import { BindValues, isValidKey, PostgresSql } from './postgres-sql.ts'
import { PostgresUserDatabase } from './postgres-user-database.ts'
import { type AdoptedRow, type AdoptedTable, type RowChange, type RowFilter } from './table.ts'

const CLOCK = /* sql */ `
  SELECT ${ms('clock_timestamp()')} AS now, ${ms('pg_postmaster_start_time()')} AS "serverStartedAt"
`

type RawRow = Record<string, unknown>

/** Opens a table of a PostgreSQL database. */
export async function openPostgresTable(mapping: Mapping, address: string): Promise<AdoptedTable> {
  const database = new PostgresUserDatabase(address)
  try {
    const catalogue = await readPostgresCatalogue(database.db, mapping)
    return new PostgresTable(database, mapping, catalogue)
  } catch (error) {
    await database.close()
    throw error
  }
}

class PostgresTable implements AdoptedTable {
  readonly mapping: Mapping
  readonly warnings: readonly string[]
  readonly #database: PostgresUserDatabase
  readonly #catalogue: PostgresCatalogue
  readonly #sql: PostgresSql
  /** Sample values of columns where times are written as text or numbers. */
  readonly #samples = new Map<MappedField, Cell[]>()

  constructor(database: PostgresUserDatabase, mapping: Mapping, catalogue: PostgresCatalogue) {
    this.#database = database
    this.#catalogue = catalogue
    this.#sql = new PostgresSql(mapping, catalogue)
    this.mapping = mapping
    this.warnings = catalogue.warnings
  }

  get isStale(): boolean {
    return this.#database.isStale
  }

  async clock(): Promise<{ now: number; serverStartedAt: number | null }> {
    const [clock] = await this.#database.query<{ now: number; serverStartedAt: number | null }>(
      'clock',
      CLOCK,
    )
    return clock!
  }

  async row(key: string): Promise<AdoptedRow | null> {
    if (!isValidKey(this.#sql.id, key)) return null
    const values = this.#values()
    const text = /* sql */ `
      SELECT ${this.#sql.columns(values)} FROM ${this.#sql.table} WHERE ${this.#sql.isId(key, values)} LIMIT 1
    `
    const [raw] = await this.#database.query<RawRow>('row', text, values.all)
    return raw ? this.#toRow(raw) : null
  }

  async rows(filter: RowFilter): Promise<AdoptedRow[]> {
    const values = this.#values()
    const spellings = filter.statusValues && (await this.#spellings(filter.statusValues))
    const text = /* sql */ `
      SELECT ${this.#sql.columns(values)} FROM ${this.#sql.table}
       WHERE ${this.#conditions(filter, spellings, values)}
       ORDER BY ${this.#orderByStart()}${this.#sql.id.quoted} DESC
       LIMIT ${values.bind(filter.limit)}
    `
    const rows = await this.#database.query<RawRow>('rows', text, values.all)
    return rows.map((raw) => this.#toRow(raw))
  }

  counts(): Promise<{ value: string; group: string | null; count: number }[]> {
    return this.#database.query(
      'counts',
      /* sql */ `
      SELECT coalesce(${this.#sql.text('status')}, '') AS value, ${this.#sql.text('group')} AS "group",
             count(*)::float8 AS count
        FROM ${this.#sql.table} WHERE ${this.#sql.id.quoted} IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2
    `,
    )
  }

  async keys(after: string | null, limit: number): Promise<string[]> {
    const values = this.#values()
    const { id, table } = this.#sql
    const from =
      after !== null && isValidKey(id, after)
        ? this.#sql.isId(after, values, '>')
        : `${id.quoted} IS NOT NULL`
    const text = /* sql */ `
      SELECT ${id.quoted}::text AS key FROM ${table} WHERE ${from} ORDER BY ${id.quoted} LIMIT ${values.bind(limit)}
    `
    const rows = await this.#database.query<{ key: string }>('keys', text, values.all)
    return rows.map(({ key }) => key)
  }

  async change(row: AdoptedRow, change: RowChange): Promise<AdoptedRow | null> {
    const { missingGrant } = this.#catalogue
    if (missingGrant !== null) {
      // The right may be granted meanwhile: then the next check finds it.
      this.#database.isStale = true
      throw new RefusedError(`The login may not write to ${this.#sql.table}: ${missingGrant}`)
    }
    const values = this.#values()
    const assigned = toAssignments(this.mapping, this.#catalogue.columns, change)
    const sets: string[] = []
    for (const [field, assignment] of assigned) {
      sets.push(this.#sql.assignment(field, assignment, await this.#timeFormat(row, field), values))
    }
    const { table } = this.#sql
    const isUnchanged = this.#sql.isUnchanged(row, values)
    const columns = this.#sql.columns(values)
    const update = /* sql */ `UPDATE ${table} SET ${sets.join(', ')} WHERE ${isUnchanged} RETURNING ${columns}`
    const select = /* sql */ `SELECT ${columns} FROM ${table} WHERE ${isUnchanged}`
    const label = `Row ${sanitizeLine(row.key)} of ${this.mapping.name}`
    const [raw] =
      sets.length > 0
        ? await this.#database.write<RawRow>(update, values.all, label)
        : await this.#database.query<RawRow>('still', select, values.all)
    return raw ? this.#toRow(raw) : null
  }

  close(): Promise<void> {
    return this.#database.close()
  }

  #values(): BindValues {
    return new BindValues(this.mapping.timeZone)
  }

  #conditions(
    filter: RowFilter,
    spellings: readonly string[] | undefined,
    values: BindValues,
  ): string {
    const { source, group, search, startedSince, after } = filter
    const { id } = this.#sql
    const conditions = [`${id.quoted} IS NOT NULL`]
    const isText = (field: MappedField, text: string): string =>
      // A text that PostgreSQL cannot store matches nothing.
      stripNul(text) === text ? `${this.#sql.text(field)} = ${values.bind(text)}` : 'false'
    if (spellings) conditions.push(this.#sql.isOneOf(spellings, values))
    if (source !== undefined) {
      const column = this.#sql.text('source')
      const orNone = filter.orNoSource ? ` OR ${column} IS NULL OR ${column} = ''` : ''
      conditions.push(`(${isText('source', source)}${orNone})`)
    }
    if (group !== undefined) conditions.push(isText('group', group))
    if (search !== undefined) conditions.push(this.#matchesSearch(values.bind(containing(search))))
    if (startedSince !== undefined) {
      const started = this.#sql.timestamp('startedAt', values)
      conditions.push(`${started} >= ${values.bind(startedSince)}::float8`)
    }
    if (after) conditions.push(this.#isAfter(after, values))
    return conditions.join(' AND ')
  }

  /** Sorts by the selected column, so that it is computed once. */
  #orderByStart(): string {
    return this.mapping.columns.startedAt === undefined ? '' : '"t:startedAt" DESC NULLS LAST, '
  }

  async #spellings(statusValues: readonly string[]): Promise<string[]> {
    const { quoted, labels } = this.#catalogue.columns.get('status')!
    // An enum cannot be compared with other texts.
    if (labels) return spellingsOf(statusValues, labels).filter((value) => labels.includes(value))
    const { isStatusIndexed } = this.#catalogue
    const text = distinctValuesSql(this.#sql.table, quoted, isStatusIndexed)
    const found = await this.#database.query<{ value: string | null }>('statuses', text)
    return spellingsOf(
      statusValues,
      found.flatMap(({ value }) => value ?? []),
    )
  }

  #matchesSearch(pattern: string): string {
    const fields: MappedField[] =
      this.mapping.kind === 'targets' ? ['key', 'id', 'error'] : ['source', 'id', 'error']
    return `(${fields.map((field) => `${this.#sql.text(field)} ILIKE ${pattern}`).join(' OR ')})`
  }

  #isAfter({ startedAt, key }: NonNullable<RowFilter['after']>, values: BindValues): string {
    const started = `coalesce(${this.#sql.timestamp('startedAt', values)}, '-infinity')`
    const at = `${values.bind(startedAt ?? -Infinity)}::float8`
    const { id } = this.#sql
    // An id of another type is that of a row of another table: rows of the same time come before it.
    return isValidKey(id, key)
      ? `(${started}, ${id.quoted}) < (${at}, ${values.bind(key)}::${id.castTo})`
      : `${started} < ${at}`
  }

  #toRow(raw: RawRow): AdoptedRow {
    const cell = (field: MappedField): Cell => (raw[`c:${field}`] ?? null) as string | null
    const names = mappedFields(this.mapping)
    return makeRow({
      cell: (field) =>
        field === 'error' && this.#kindOf(field) === 'json'
          ? parseJsonString(cell(field))
          : cell(field),
      timestamp: (field) => (raw[`t:${field}`] ?? null) as number | null,
      hasCheckpoint: raw['hasCheckpoint'] === true,
      userRow: Object.fromEntries(
        this.#sql.userColumns().map(({ name }, at) => [name, raw[`u:${at}`]]),
      ),
      snapshot: Object.fromEntries(names.map(([field, name]) => [name, cell(field)])),
    })
  }

  #kindOf(field: MappedField): PostgresColumn['kind'] | undefined {
    return this.#catalogue.columns.get(field)?.kind
  }

  /** Not used for columns with a time type. */
  async #timeFormat(row: AdoptedRow, field: MappedField): Promise<TimeFormat> {
    const column = this.#catalogue.columns.get(field)!
    const storage = storageOf(column)
    if (!storage) return timeFormatFor('either', [], [])
    const otherTimes = TIME_FIELDS.filter((one) => storageOf(this.#catalogue.columns.get(one))).map(
      (one) => toNumber(row.snapshot[this.mapping.columns[one]!] ?? null, this.#kindOf(one)),
    )
    return timeFormatFor(storage, await this.#samplesOf(field, column), otherTimes)
  }

  async #samplesOf(field: MappedField, { quoted, kind }: PostgresColumn): Promise<Cell[]> {
    const known = this.#samples.get(field)
    if (known) return known
    const text = /* sql */ `
      SELECT ${quoted}::text AS value FROM ${this.#sql.table} WHERE ${quoted} IS NOT NULL LIMIT 20
    `
    const rows = await this.#database.query<{ value: string }>('sample', text)
    const found = rows.map(({ value }) => toNumber(value, kind))
    if (found.length > 0) this.#samples.set(field, found)
    return found
  }
}

/** How the column stores times; null if it has a time type, or is not mapped. */
function storageOf(column: PostgresColumn | undefined): TimeStorage | null {
  switch (column?.kind) {
    case 'text':
      return 'text'
    case 'integer':
      return column.base === 'int8' ? 'integer' : 'seconds'
    case 'number':
      return 'number'
    default:
      return null
  }
}

/** Numbers are read as text. */
function toNumber(value: Cell, kind: PostgresColumn['kind'] | undefined): Cell {
  return value === null || kind === 'text' ? value : Number(value)
}

/** Unwraps a JSON string; returns other JSON unchanged. */
function parseJsonString(json: Cell): Cell {
  const value: unknown = typeof json === 'string' ? JSON.parse(json) : null
  return typeof value === 'string' ? value : json
}
