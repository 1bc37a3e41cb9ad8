import type { Client } from 'pg'
import { messageOf } from '../../../core/model/errors.ts'
import { parseAddress } from '../../../core/store/postgres/address.ts'
import { connectTo } from '../../../core/store/postgres/connect.ts'
import { codeOf, isConnectionError, storeError } from '../../../core/store/postgres/errors.ts'
import { closeClient } from '../../../core/store/postgres/timeouts.ts'
import type { DeniedTables, DatabaseScan } from './find-tables.ts'
import {
  VALUE_LENGTH_MAX,
  VALUES_MAX,
  valuesInCheck,
  type ColumnType,
  type FoundColumn,
  type FoundTable,
  type ValueCount,
} from './found-table.ts'
import { identifierMistake, quoteIdentifier } from '../identifiers.ts'
import { canHoldStatus, canHoldStatusValues } from './status-column.ts'

// Partitions are seen through their table. What may not be read cannot be judged.
const COLUMNS = /* sql */ `
  SELECT n.nspname AS schema, c.relname AS table, pg_table_is_visible(c.oid) AS visible,
         a.attname AS name, format_type(a.atttypid, NULL) AS type, t.typtype = 'e' AS is_enum,
         (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid) AS labels,
         coalesce(k.indkey[0] = a.attnum AND k.indnkeyatts = 1, false) AS is_key,
         (SELECT array_agg(pg_get_constraintdef(o.oid))
            FROM pg_constraint o WHERE o.conrelid = c.oid AND o.contype = 'c' AND a.attnum = ANY (o.conkey)) AS checks
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_index k ON k.indrelid = c.oid AND k.indisprimary
   WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'unstuck')
     AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
     AND ($1::text IS NULL OR $1 IN (c.relname, n.nspname || '.' || c.relname))
   ORDER BY n.nspname, c.relname, a.attnum
`

const DENIED = /* sql */ `
  SELECT n.nspname AS schema, c.relname AS table
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'unstuck')
     AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT'))
     AND ($1::text IS NULL OR $1 IN (c.relname, n.nspname || '.' || c.relname))
   ORDER BY n.nspname, c.relname
   LIMIT 100
`

type ColumnRow = {
  schema: string
  table: string
  visible: boolean
  name: string
  type: string
  is_enum: boolean
  labels: string[] | null
  is_key: boolean
  checks: string[] | null
}

/** A look must not be a load: then a part of the rows has to do. */
const READ_TIMEOUT_MS = 3_000
const LOCK_TIMEOUT_MS = 1_000
const TIMEOUTS = `SET LOCAL statement_timeout = ${READ_TIMEOUT_MS}; SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`
const ROWS_MAX = 100_000
const QUERY_CANCELED = '57014'
const LOCK_NOT_AVAILABLE = '55P03'

/** Reads in a transaction that cannot write. */
export async function findPostgresTables(text: string, only?: string): Promise<DatabaseScan> {
  const address = parseAddress(text)
  const { where } = address
  let client: Client | undefined
  try {
    client = await connectTo(address, address.hosts.length === 1 ? 'any' : 'primary')
    await client.query('BEGIN READ ONLY')
    const { rows } = await client.query<ColumnRow>(COLUMNS, [only ?? null])
    const denied = await client.query<DeniedTables['tables'][number]>(DENIED, [only ?? null])
    const login = await client.query<{ login: string }>('SELECT current_user::text AS login')
    await client.query(TIMEOUTS)
    const tables: FoundTable[] = []
    for (const columns of Map.groupBy(rows, ({ schema, table }) => `${schema}.${table}`).values())
      tables.push(await readTable(client, columns, only !== undefined))
    return { location: where, tables, denied: { login: login.rows[0]!.login, tables: denied.rows } }
  } catch (error) {
    throw storeError(error, where)
  } finally {
    if (client) await closeClient(client)
  }
}

async function readTable(
  client: Client,
  rows: readonly ColumnRow[],
  readsAllColumns: boolean,
): Promise<FoundTable> {
  const { schema, table, visible } = rows[0]!
  const columns: FoundColumn[] = []
  let readError: string | null = null
  for (const { name, type, is_enum, labels, is_key, checks } of rows) {
    const column = { name, type: is_enum ? ('enum' as const) : typeOf(type), isPrimaryKey: is_key }
    const withoutValues: FoundColumn = { ...column, allowedValues: null, values: null }
    const isStatus = canHoldStatus(withoutValues)
    const readsValues = isStatus || (readsAllColumns && canHoldStatusValues(withoutValues))
    if (
      !readsValues ||
      readError !== null ||
      [schema, table].some((one) => identifierMistake(one) !== null)
    ) {
      columns.push(withoutValues)
      continue
    }
    const checked = (checks ?? [])
      .map((check) => valuesInCheck(check, name))
      .find((values) => values)
    const from = `${quoteIdentifier(schema)}.${quoteIdentifier(table)}`
    const values = await readValues(client, from, name, isStatus)
    if ('unread' in values) readError = values.unread
    columns.push({
      ...column,
      allowedValues: labels ?? checked ?? null,
      values: 'unread' in values ? null : values,
    })
  }
  return { schema: visible ? null : schema, table, columns, readError }
}

function typeOf(type: string): ColumnType {
  if (type === 'timestamp with time zone') return 'moment'
  if (type === 'timestamp without time zone' || type === 'date') return 'local'
  if (/^(smallint|integer|bigint|numeric|real|double precision)$/.test(type)) return 'number'
  if (/^(text|character varying|character|citext|name)$/.test(type)) return 'text'
  if (/^jsonb?$/.test(type)) return 'json'
  return type === 'uuid' || type === 'boolean' ? type : 'other'
}

/** `isWhole`: of all rows, if there is time. Else why not: one table that cannot be read says nothing of the others. */
async function readValues(
  client: Client,
  table: string,
  column: string,
  readsAllRows: boolean,
): Promise<ValueCount[] | { unread: string }> {
  const query = async (from: string): Promise<ValueCount[]> => {
    await client.query('SAVEPOINT words')
    const { rows } = await client.query<ValueCount>(/* sql */ `
      SELECT left(word, ${VALUE_LENGTH_MAX}) AS word, count(*)::float8 AS count
        FROM (SELECT ${quoteIdentifier(column)}::text AS word FROM ${from}) AS one
       WHERE word IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${VALUES_MAX + 1}
    `)
    return rows
  }
  const rollback = (): Promise<unknown> => client.query('ROLLBACK TO SAVEPOINT words')
  const sample = `${table} LIMIT ${ROWS_MAX}`
  try {
    return await query(readsAllRows ? table : sample).catch(async (error: unknown) => {
      if (codeOf(error) !== QUERY_CANCELED) throw error
      await rollback()
      return query(sample)
    })
  } catch (error) {
    const readError = readErrorOf(error)
    if (readError === null) throw error
    await rollback()
    return { unread: readError }
  }
}

/** Null: it is not about this table. */
function readErrorOf(error: unknown): string | null {
  switch (codeOf(error)) {
    case LOCK_NOT_AVAILABLE:
      return 'another transaction holds it'
    case QUERY_CANCELED:
      return `to look at ${ROWS_MAX} of them took longer than ${READ_TIMEOUT_MS / 1_000} s`
    default:
      return isConnectionError(error) ? null : messageOf(error)
  }
}
