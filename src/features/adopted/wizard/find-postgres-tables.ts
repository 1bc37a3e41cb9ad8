import type { Client } from 'pg'
import { messageOf } from '../../../core/model/errors.ts'
import { parseAddress } from '../../../core/store/postgres/address.ts'
import { connectTo } from '../../../core/store/postgres/connect.ts'
import { codeOf, isTrouble, storeError } from '../../../core/store/postgres/errors.ts'
import { hangUp } from '../../../core/store/postgres/timeouts.ts'
import type { Barred, Finding } from './find-tables.ts'
import {
  WORD_LENGTH,
  WORDS_MAX,
  wordsInCheck,
  type ColumnType,
  type FoundColumn,
  type FoundTable,
  type FoundWord,
} from './found-table.ts'
import { nameMistake, quoteName } from '../names.ts'
import { mayHoldStatus, mayHoldWords } from './status-column.ts'

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

const BARRED = /* sql */ `
  SELECT n.nspname AS schema, c.relname AS table
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'unstuck')
     AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT'))
     AND ($1::text IS NULL OR $1 IN (c.relname, n.nspname || '.' || c.relname))
   ORDER BY n.nspname, c.relname
   LIMIT 100
`

type Row = {
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
const WORDS_MS = 3_000
const LOCK_MS = 1_000
const LIMITS = `SET LOCAL statement_timeout = ${WORDS_MS}; SET LOCAL lock_timeout = ${LOCK_MS}`
const ROWS_MAX = 100_000
const CANCELLED = '57014'
const LOCKED = '55P03'

/** Reads in a transaction that cannot write. */
export async function findPostgresTables(text: string, only?: string): Promise<Finding> {
  const address = parseAddress(text)
  const { where } = address
  let client: Client | undefined
  try {
    client = await connectTo(address, address.hosts.length === 1 ? 'any' : 'primary')
    await client.query('BEGIN READ ONLY')
    const { rows } = await client.query<Row>(COLUMNS, [only ?? null])
    const barred = await client.query<Barred['tables'][number]>(BARRED, [only ?? null])
    const asked = await client.query<{ login: string }>('SELECT current_user::text AS login')
    await client.query(LIMITS)
    const tables: FoundTable[] = []
    for (const columns of Map.groupBy(rows, ({ schema, table }) => `${schema}.${table}`).values())
      tables.push(await readTable(client, columns, only !== undefined))
    return { where, tables, barred: { login: asked.rows[0]!.login, tables: barred.rows } }
  } catch (error) {
    throw storeError(error, where)
  } finally {
    if (client) await hangUp(client)
  }
}

async function readTable(
  client: Client,
  rows: readonly Row[],
  isWide: boolean,
): Promise<FoundTable> {
  const { schema, table, visible } = rows[0]!
  const columns: FoundColumn[] = []
  let unread: string | null = null
  for (const { name, type, is_enum, labels, is_key, checks } of rows) {
    const column = { name, type: is_enum ? ('enum' as const) : typeOf(type), isKey: is_key }
    const bare: FoundColumn = { ...column, allowed: null, words: null }
    const isStatus = mayHoldStatus(bare)
    const isRead = isStatus || (isWide && mayHoldWords(bare))
    if (!isRead || unread !== null || [schema, table].some((one) => nameMistake(one) !== null)) {
      columns.push(bare)
      continue
    }
    const checked = (checks ?? []).map((check) => wordsInCheck(check, name)).find((words) => words)
    const from = `${quoteName(schema)}.${quoteName(table)}`
    const words = await readWords(client, from, name, isStatus)
    if ('unread' in words) unread = words.unread
    columns.push({
      ...column,
      allowed: labels ?? checked ?? null,
      words: 'unread' in words ? null : words,
    })
  }
  return { schema: visible ? null : schema, table, columns, unread }
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
async function readWords(
  client: Client,
  table: string,
  column: string,
  isWhole: boolean,
): Promise<FoundWord[] | { unread: string }> {
  const ask = async (from: string): Promise<FoundWord[]> => {
    await client.query('SAVEPOINT words')
    const { rows } = await client.query<FoundWord>(/* sql */ `
      SELECT left(word, ${WORD_LENGTH}) AS word, count(*)::float8 AS count
        FROM (SELECT ${quoteName(column)}::text AS word FROM ${from}) AS one
       WHERE word IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${WORDS_MAX + 1}
    `)
    return rows
  }
  const rollback = (): Promise<unknown> => client.query('ROLLBACK TO SAVEPOINT words')
  const some = `${table} LIMIT ${ROWS_MAX}`
  try {
    return await ask(isWhole ? table : some).catch(async (error: unknown) => {
      if (codeOf(error) !== CANCELLED) throw error
      await rollback()
      return ask(some)
    })
  } catch (error) {
    const unread = whyUnread(error)
    if (unread === null) throw error
    await rollback()
    return { unread }
  }
}

/** Null: it is not about this table. */
function whyUnread(error: unknown): string | null {
  switch (codeOf(error)) {
    case LOCKED:
      return 'another transaction holds it'
    case CANCELLED:
      return `to look at ${ROWS_MAX} of them took longer than ${WORDS_MS / 1_000} s`
    default:
      return isTrouble(error) ? null : messageOf(error)
  }
}
