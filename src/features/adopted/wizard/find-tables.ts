import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Client } from 'pg'
import {
  messageOf,
  NotFoundError,
  StoreReadOnlyError,
  UnusableStoreError,
  UsageError,
} from '../../../core/model/errors.ts'
import { parseAddress } from '../../../core/store/postgres/address.ts'
import { connectTo } from '../../../core/store/postgres/connect.ts'
import * as postgres from '../../../core/store/postgres/errors.ts'
import { closeClient } from '../../../core/store/postgres/timeouts.ts'
import * as sqlite from '../../../core/store/sqlite/errors.ts'
import { fileError } from '../../../core/store/sqlite/open.ts'
import { quoteIdentifier, tableNameMistake } from '../identifiers.ts'
import { ownTables } from '../table/sqlite-catalogue.ts'
import {
  qualifiedName,
  type ColumnType,
  type FoundColumn,
  type FoundTable,
  type ValueCount,
} from './columns.ts'
import {
  countsSql,
  factColumns,
  toValueCount,
  valuesInCheck,
  type CountRow,
  type FactColumns,
} from './status-values-sql.ts'
import { canHoldStatusValues, hasStatusName, isPlain, VALUES_MAX } from './statuses.ts'

export type DatabaseScan = {
  /** The address without its password. */
  readonly location: string
  /** Without Unstuck's own tables, and those that this login may not read. */
  readonly tables: readonly FoundTable[]
  /** The tables that this login may not read; null on SQLite. */
  readonly denied: DeniedTables | null
}

export type DeniedTables = {
  readonly login: string
  /** At most 100. */
  readonly tables: readonly { readonly schema: string; readonly table: string }[]
}

/**
 * Reads the tables of a database and the values of columns that may be a status. With `only` it reads that table alone,
 * and the values of all its text columns. Never writes.
 */
export async function findTables(address: string, only?: string): Promise<DatabaseScan> {
  if (/^postgres(ql)?:\/\//.test(address)) return findPostgresTables(address, only)
  if (address.startsWith('sqlite:')) return findSqliteTables(address.slice('sqlite:'.length), only)
  // The address itself is not repeated: it may hold a password.
  throw new UsageError('The database address is neither sqlite:PATH nor postgres://….')
}

/** No status is longer. */
const VALUE_LENGTH_MAX = 80
/** Rows read of a column that is not named like a status, and of one whose full count takes too long. */
const SAMPLE_ROWS = 100_000

/** A column as the catalogue describes it. `allowedValues`: those of an enum. */
type CatalogueColumn = Omit<FoundColumn, 'values'> & { readonly checks: readonly string[] | null }

/** Returns why the rows of this table cannot be read instead of throwing, so that the scan continues. */
type ReadValues = (
  column: string,
  rowsMax: number,
  facts: FactColumns | null,
) => Promise<ValueCount[] | string> | ValueCount[]

/** Adds the values of the columns that may be a status, and of every text column of the only table. */
async function readTable(
  { schema, table }: Pick<FoundTable, 'schema' | 'table'>,
  columns: readonly CatalogueColumn[],
  isOnly: boolean,
  readValues: ReadValues,
): Promise<FoundTable> {
  const isUsable = tableNameMistake(qualifiedName({ schema, table })) === null
  const found: FoundColumn[] = []
  let readError: string | null = null
  const facts = factColumns(columns)
  for (const { checks, ...column } of columns) {
    const isNamed = hasStatusName(column) || isPlain(column)
    const isRead = isUsable && readError === null && canHoldStatusValues(column)
    if (!isRead || !(isOnly || isNamed)) {
      found.push({ ...column, allowedValues: null, values: null })
      continue
    }
    const inChecks = checks?.map((check) => valuesInCheck(check, column.name))
    const allowedValues = column.allowedValues ?? inChecks?.find((values) => values) ?? null
    const rowsMax = isNamed ? Infinity : SAMPLE_ROWS
    const values = await readValues(column.name, rowsMax, isPlain(column) ? facts : null)
    if (typeof values === 'string') readError = values
    found.push({ ...column, allowedValues, values: typeof values === 'string' ? null : values })
  }
  return { schema, table, columns: found, readError }
}

type TypePatterns = readonly (readonly [ColumnType, RegExp])[]

function typeOf(declared: string, patterns: TypePatterns): ColumnType {
  return patterns.find(([, pattern]) => pattern.test(declared))?.[0] ?? 'other'
}

// PostgreSQL

const IS_USER_TABLE = /* sql */ `
  c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'unstuck')
  AND ($1::text IS NULL OR $1 IN (c.relname, n.nspname || '.' || c.relname))
`
const POSTGRES_COLUMNS = /* sql */ `
  SELECT n.nspname AS schema, c.relname AS table, pg_table_is_visible(c.oid) AS visible,
         a.attname AS name, format_type(a.atttypid, NULL) AS type,
         (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
            FROM pg_enum e WHERE e.enumtypid = t.oid) AS "allowedValues",
         coalesce(k.indkey[0] = a.attnum AND k.indnkeyatts = 1, false) AS "isPrimaryKey",
         (SELECT array_agg(pg_get_constraintdef(o.oid))
            FROM pg_constraint o WHERE o.conrelid = c.oid AND o.contype = 'c' AND a.attnum = ANY (o.conkey)) AS checks
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_index k ON k.indrelid = c.oid AND k.indisprimary
   WHERE ${IS_USER_TABLE}
     AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
   ORDER BY n.nspname, c.relname, a.attnum
`
const POSTGRES_DENIED = /* sql */ `
  SELECT n.nspname AS schema, c.relname AS table
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE ${IS_USER_TABLE}
     AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT'))
   ORDER BY n.nspname, c.relname
   LIMIT 100
`

type PostgresColumn = CatalogueColumn & { schema: string; table: string; visible: boolean }

const POSTGRES_TYPES: TypePatterns = [
  ['timestamptz', /^timestamp with time zone$/],
  ['timestamp', /^(timestamp without time zone|date)$/],
  ['number', /^(smallint|integer|bigint|numeric|real|double precision)$/],
  ['text', /^(text|character varying|character|citext|name)$/],
  ['json', /^jsonb?$/],
  ['uuid', /^uuid$/],
  ['boolean', /^boolean$/],
]

const READ_TIMEOUT_MS = 3_000
const TIMEOUTS = `SET LOCAL statement_timeout = ${READ_TIMEOUT_MS}; SET LOCAL lock_timeout = 1000`
const QUERY_CANCELED = '57014'
const LOCK_NOT_AVAILABLE = '55P03'

async function findPostgresTables(text: string, only?: string): Promise<DatabaseScan> {
  const address = parseAddress(text)
  const { where } = address
  let client: Client | undefined
  try {
    client = await connectTo(address, address.hosts.length === 1 ? 'any' : 'primary')
    await client.query('BEGIN READ ONLY')
    const named = [only ?? null]
    const { rows } = await client.query<PostgresColumn>(POSTGRES_COLUMNS, named)
    const denied = await client.query<DeniedTables['tables'][number]>(POSTGRES_DENIED, named)
    const login = await client.query<{ login: string }>('SELECT current_user::text AS login')
    await client.query(TIMEOUTS)
    const tables: FoundTable[] = []
    for (const columns of Map.groupBy(rows, ({ schema, table }) => `${schema}.${table}`).values()) {
      const { schema, table, visible } = columns[0]!
      const from = { schema, table }
      const found = await readTable(from, columns.map(toColumn), only !== undefined, (...column) =>
        readPostgresValues(client!, from, ...column),
      )
      tables.push({ ...found, schema: visible ? null : schema })
    }
    return { location: where, tables, denied: { login: login.rows[0]!.login, tables: denied.rows } }
  } catch (error) {
    throw postgres.storeError(error, where)
  } finally {
    if (client) await closeClient(client)
  }
}

function toColumn({
  name,
  type,
  isPrimaryKey,
  allowedValues,
  checks,
}: PostgresColumn): CatalogueColumn {
  const kind = allowedValues ? 'enum' : typeOf(type, POSTGRES_TYPES)
  return { name, type: kind, isPrimaryKey, allowedValues, checks }
}

/** Reads a sample if all rows take too long. */
async function readPostgresValues(
  client: Client,
  { schema, table }: { schema: string; table: string },
  column: string,
  rowsMax: number,
  facts: FactColumns | null,
): Promise<ValueCount[] | string> {
  const query = async (limit: number): Promise<ValueCount[]> => {
    await client.query('SAVEPOINT before_values')
    const { counts, from } = countsSql(
      `${quoteIdentifier(column)}::text`,
      `${quoteIdentifier(schema)}.${quoteIdentifier(table)}`,
      `LIMIT ${limit === Infinity ? 'ALL' : limit}`,
      facts,
    )
    const { rows } = await client.query<CountRow>(/* sql */ `
      SELECT left(value, ${VALUE_LENGTH_MAX}) AS value, count(*)::float8 AS count${counts} FROM ${from}
       WHERE value IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${VALUES_MAX + 1}
    `)
    return rows.map((row) => toValueCount(row, facts))
  }
  const rollback = (): Promise<unknown> => client.query('ROLLBACK TO SAVEPOINT before_values')
  try {
    return await query(rowsMax).catch(async (error: unknown) => {
      if (postgres.codeOf(error) !== QUERY_CANCELED) throw error
      await rollback()
      return query(SAMPLE_ROWS)
    })
  } catch (error) {
    const because = readErrorOf(error)
    if (because === null) throw error
    await rollback()
    return because
  }
}

/** Null for an error of the connection. */
function readErrorOf(error: unknown): string | null {
  const code = postgres.codeOf(error)
  if (code === LOCK_NOT_AVAILABLE) return 'another transaction has locked it'
  if (code === QUERY_CANCELED)
    return `reading ${SAMPLE_ROWS} of them took longer than ${READ_TIMEOUT_MS / 1_000} s`
  return postgres.isConnectionError(error) ? null : messageOf(error)
}

// SQLite

const SQLITE_TABLES = /* sql */ `
  SELECT name, sql FROM sqlite_schema
   WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
   ORDER BY name
`
const SQLITE_COLUMNS = /* sql */ `
  SELECT name, type, pk FROM pragma_table_xinfo(:table) WHERE hidden <> 1 ORDER BY cid
`
const SQLITE_HAS_ROWID = /* sql */ `SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = :table`
/** Of a larger table the newest rows, since values change with the program that writes them. */
const SQLITE_ROWS_MAX = 1_000_000
const BUSY_TIMEOUT_MS = 2_000

async function findSqliteTables(file: string, only?: string): Promise<DatabaseScan> {
  const path = resolve(file)
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat)
    throw new NotFoundError(
      `database at sqlite:${path}`,
      'Name the database of your table with --db: sqlite:PATH or postgres://….',
    )
  if (!stat.isFile())
    throw new UnusableStoreError(`${path} is not a file. Name the database file itself with --db.`)
  try {
    using db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS })
    return { location: `sqlite:${path}`, tables: await readSqliteTables(db, only), denied: null }
  } catch (error) {
    throw fileError(error, path) ?? toReadError(sqlite.storeError(error, path), path)
  }
}

/** Explains why a file that is only read cannot be read. */
function toReadError(error: unknown, path: string): unknown {
  if (!(error instanceof StoreReadOnlyError)) return error
  return new UnusableStoreError(
    `SQLite cannot read ${path}: it is in WAL mode, where reading needs files next to it, and this user may not create ` +
      'them. Run this as a user that may write to the folder, or copy the file, with the files that end in -wal and ' +
      '-shm, and name the copy with --db.',
    { cause: error },
  )
}

async function readSqliteTables(db: DatabaseSync, only: string | undefined): Promise<FoundTable[]> {
  const listed = db.prepare(SQLITE_TABLES).all() as { name: string; sql: string }[]
  const own = ownTables(listed.map(({ name }) => name))
  const tables: FoundTable[] = []
  for (const { name: table, sql } of listed) {
    if (own.has(table) || (only ?? table).toLowerCase() !== table.toLowerCase()) continue
    const hasRowid = db.prepare(SQLITE_HAS_ROWID).get({ table })?.['wr'] === 0
    const readValues: ReadValues = (column, rowsMax, facts) => {
      const newest = `${hasRowid ? 'ORDER BY rowid DESC' : ''} LIMIT ${Math.min(rowsMax, SQLITE_ROWS_MAX)}`
      const [name, of] = [quoteIdentifier(column), quoteIdentifier(table)]
      const { counts, from } = countsSql(name, of, newest, facts)
      const select = /* sql */ `
        SELECT substr(value, 1, ${VALUE_LENGTH_MAX}) AS value, count(*) AS count${counts} FROM ${from}
         WHERE typeof(value) IN ('text', ${facts ? "'integer'" : "'text'"})
         GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${VALUES_MAX + 1}
      `
      return (db.prepare(select).all() as unknown as CountRow[]).map((row) =>
        toValueCount(row, facts),
      )
    }
    const columns = sqliteColumns(db, table, sql)
    tables.push(await readTable({ schema: null, table }, columns, only !== undefined, readValues))
  }
  return tables
}

/** By the declared type, which SQLite does not enforce. */
const SQLITE_TYPES: TypePatterns = [
  ['boolean', /bool/i],
  ['timestamptz', /date|time/i],
  ['json', /json/i],
  ['uuid', /uuid|guid/i],
  ['text', /char|text|clob|enum|string/i],
  ['number', /int|real|doub|floa|num|dec|serial/i],
]

function sqliteColumns(db: DatabaseSync, table: string, sql: string): CatalogueColumn[] {
  type Row = { name: string; type: string; pk: number }
  const rows = db.prepare(SQLITE_COLUMNS).all({ table }) as Row[]
  const hasSingleKey = rows.filter(({ pk }) => pk > 0).length === 1
  const checks = sql.match(/\bCHECK\s*\((?:[^()']|'(?:[^']|'')*'|\([^()]*\))*\)/gi)
  return rows.map(({ name, type, pk }) => ({
    name,
    type: typeOf(type, SQLITE_TYPES),
    isPrimaryKey: pk > 0 && hasSingleKey,
    allowedValues: null,
    checks,
  }))
}
