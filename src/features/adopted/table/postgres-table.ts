import { messageOf, RefusedError, UsageError } from '../../../core/model/errors.ts'
import { containing } from '../../../core/store/like.ts'
import { type Connection, ms, sql } from '../../../core/store/postgres/database.ts'
import { codeOf } from '../../../core/store/postgres/errors.ts'
import { stripNul } from '../../../core/store/postgres/strip-nul.ts'
import { toAssignments } from './assignments.ts'
import {
  distinctValuesSql,
  type MappedField,
  mappedFields,
  spellingsOf,
  TIME_FIELDS,
} from './columns.ts'
import { timeFormatFor, type TimeStorage } from './time-format.ts'
import { type Cell, makeRow } from './make-row.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import type { Mapping } from '../mapping.ts'
import type { TimeFormat } from './timestamps.ts'
import {
  type PostgresCatalogue,
  type PostgresColumn,
  readPostgresCatalogue,
} from './postgres-catalogue.ts'
import { isValidKey } from './postgres-keys.ts'
import { type SharedPool, sharePool } from './postgres-pools.ts'
import { PostgresSql, BindValues } from './postgres-sql.ts'
import { mayBeStale } from './stale.ts'
import type { AdoptedRow, AdoptedTable, RowChange, RowFilter } from './table.ts'

const LOCK_TIMEOUT_MS = 2_000
const CHANGE_TIMEOUT_MS = 5_000
// Less than a client waits for an answer: a change that was given up must not come through later.
const TIMEOUTS = `SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; SET LOCAL statement_timeout = ${CHANGE_TIMEOUT_MS}`
const CLOCK = /* sql */ `
  SELECT ${ms('clock_timestamp()')} AS now, ${ms('pg_postmaster_start_time()')} AS "serverStartedAt"
`

type RawRow = Record<string, unknown>

/** Opens a table of a PostgreSQL database. */
export async function openPostgresTable(mapping: Mapping, address: string): Promise<AdoptedTable> {
  const pool = sharePool(address)
  try {
    return new PostgresTable(pool, mapping, await readPostgresCatalogue(pool.db, mapping))
  } catch (error) {
    await pool.close()
    throw error
  }
}

class PostgresTable implements AdoptedTable {
  readonly mapping: Mapping
  readonly warnings: readonly string[]
  isStale = false
  readonly #pool: SharedPool
  readonly #catalogue: PostgresCatalogue
  readonly #sql: PostgresSql
  /** Of each column that times are written to as text or numbers, a few that stood there. */
  readonly #samples = new Map<MappedField, Cell[]>()

  constructor(pool: SharedPool, mapping: Mapping, catalogue: PostgresCatalogue) {
    this.#pool = pool
    this.#catalogue = catalogue
    this.#sql = new PostgresSql(mapping, catalogue)
    this.mapping = mapping
    this.warnings = catalogue.warnings
  }

  async clock(): Promise<{ now: number; serverStartedAt: number | null }> {
    const [clock] = await this.#query<{ now: number; serverStartedAt: number | null }>(
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
    const [raw] = await this.#query<RawRow>('row', text, values)
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
    const rows = await this.#query<RawRow>('rows', text, values)
    return rows.map((raw) => this.#toRow(raw))
  }

  counts(): Promise<{ word: string; group: string | null; count: number }[]> {
    return this.#query(
      'counts',
      /* sql */ `
      SELECT coalesce(${this.#sql.text('status')}, '') AS word, ${this.#sql.text('group')} AS "group",
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
    const rows = await this.#query<{ key: string }>('keys', text, values)
    return rows.map(({ key }) => key)
  }

  async change(row: AdoptedRow, change: RowChange): Promise<AdoptedRow | null> {
    const { missingGrant } = this.#catalogue
    if (missingGrant !== null) {
      // Whoever reads this may give it: then the next look finds it.
      this.isStale = true
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
    const [raw] =
      sets.length > 0
        ? await this.#write(
            row,
            /* sql */ `UPDATE ${table} SET ${sets.join(', ')} WHERE ${isUnchanged} RETURNING ${columns}`,
            values,
          )
        : await this.#query<RawRow>(
            'still',
            /* sql */ `SELECT ${columns} FROM ${table} WHERE ${isUnchanged}`,
            values,
          )
    return raw ? this.#toRow(raw) : null
  }

  close(): Promise<void> {
    return this.#pool.close()
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
      // What PostgreSQL cannot store stands nowhere.
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

  /** By the name that it has among the columns, so that it is worked out once. */
  #orderByStart(): string {
    return this.mapping.columns.startedAt === undefined ? '' : '"m:startedAt" DESC NULLS LAST, '
  }

  async #spellings(statusValues: readonly string[]): Promise<string[]> {
    const { quoted, labels } = this.#catalogue.columns.get('status')!
    // An enum takes no text that is not one of its own.
    if (labels) return spellingsOf(statusValues, labels).filter((word) => labels.includes(word))
    const { isStatusIndexed } = this.#catalogue
    const text = distinctValuesSql(this.#sql.table, quoted, isStatusIndexed)
    const found = await this.#query<{ word: string | null }>('words', text)
    return spellingsOf(
      statusValues,
      found.flatMap(({ word }) => word ?? []),
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
    // An id that cannot stand there is that of a row elsewhere: rows of the same moment come before it.
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
      timestamp: (field) => (raw[`m:${field}`] ?? null) as number | null,
      hasCheckpoint: raw['c:says'] === true,
      userRow: Object.fromEntries(
        this.#sql.userColumns().map(({ name }, at) => [name, raw[`u:${at}`]]),
      ),
      snapshot: Object.fromEntries(names.map(([field, name]) => [name, cell(field)])),
    })
  }

  #kindOf(field: MappedField): PostgresColumn['kind'] | undefined {
    return this.#catalogue.columns.get(field)?.kind
  }

  /** For a column of a type for times it is of no matter. */
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
    const rows = await this.#query<{ value: string }>('sample', text)
    const found = rows.map(({ value }) => toNumber(value, kind))
    if (found.length > 0) this.#samples.set(field, found)
    return found
  }

  /** In a transaction of its own, which ends in time whatever others hold. */
  async #write(row: AdoptedRow, text: string, values: BindValues): Promise<RawRow[]> {
    const update = sql('adopted:change', text, 'anew')
    const work = async (connection: Connection): Promise<RawRow[]> => {
      await connection.exec('adopted:limits', TIMEOUTS)
      return connection.all<RawRow>(update, values.all).catch((error: unknown) => {
        throw timeoutError(error, `Row ${sanitizeLine(row.key)} of ${this.mapping.name}`) ?? error
      })
    }
    try {
      return await this.#pool.db.transaction('adopted:change', work)
    } catch (error) {
      throw this.#toFailure(error)
    }
  }

  async #query<Row>(name: string, text: string, values?: BindValues): Promise<Row[]> {
    try {
      return await this.#pool.db.all<Row>(sql(`adopted:${name}`, text, 'anew'), values?.all)
    } catch (error) {
      throw this.#toFailure(error)
    }
  }

  #toFailure(error: unknown): unknown {
    const failure = explainError(error)
    this.isStale ||= mayBeStale(failure)
    return failure
  }
}

/** What a time is written to it as; null: it has a type for times, or none. */
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

/** Numbers come as text. */
function toNumber(value: Cell, kind: PostgresColumn['kind'] | undefined): Cell {
  return value === null || kind === 'text' ? value : Number(value)
}

/** The text in a JSON string; other JSON as it is. */
function parseJsonString(json: Cell): Cell {
  const value: unknown = typeof json === 'string' ? JSON.parse(json) : null
  return typeof value === 'string' ? value : json
}

/** Others go on meanwhile, so it is no trouble of the database. */
function timeoutError(error: unknown, row: string): RefusedError | null {
  const prefix = `${row} is left as it is`
  switch (codeOf(error)) {
    case '55P03':
      return new RefusedError(
        `${prefix}: another transaction has held it for longer than ${LOCK_TIMEOUT_MS / 1_000} s.`,
      )
    case '57014':
      return new RefusedError(
        `${prefix}: to change it took longer than ${CHANGE_TIMEOUT_MS / 1_000} s.`,
      )
    default:
      return null
  }
}

/** Rules of the user's own tables and triggers, and what has become of them since they were found. */
function explainError(error: unknown): unknown {
  const code = codeOf(error)
  if (/^(23...|22001|44000|P0001)$/.test(code)) {
    return new RefusedError(
      `The database refused the change: ${messageOf(error)}. Check the words and columns of the mapping.`,
    )
  }
  if (/^(42703|42P01|42804|3F000)$/.test(code)) {
    return new UsageError(
      `The table is no longer as it was found: ${messageOf(error)}. Look with \`unstuck doctor\`.`,
      { cause: error },
    )
  }
  return error
}
