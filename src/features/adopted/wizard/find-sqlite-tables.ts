import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import {
  NotFoundError,
  StoreReadOnlyError,
  UnusableStoreError,
} from '../../../core/model/errors.ts'
import { storeError } from '../../../core/store/sqlite/errors.ts'
import { fileError } from '../../../core/store/sqlite/open.ts'
import type { DatabaseScan } from './find-tables.ts'
import {
  VALUE_LENGTH_MAX,
  VALUES_MAX,
  valuesInCheck,
  type ColumnType,
  type FoundColumn,
  type FoundTable,
  type ValueCount,
} from './found-table.ts'
import { quoteIdentifier, tableNameMistake } from '../identifiers.ts'
import { ownTables } from '../own-tables.ts'
import { canHoldStatus, canHoldStatusValues } from './status-column.ts'

const TABLES = /* sql */ `
  SELECT name, sql FROM sqlite_schema
   WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
   ORDER BY name
`
const COLUMNS = /* sql */ `
  SELECT name, type, pk FROM pragma_table_xinfo(:table) WHERE hidden <> 1 ORDER BY cid
`
const HAS_ROWID = /* sql */ `SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = :table`
/** The newest of a table that is bigger: words change with the program that writes them. */
const ROWS_MAX = 1_000_000
/** Of a column that is not called like a status: whatever it is, it may be long. */
const OTHER_ROWS_MAX = 100_000
const BUSY_TIMEOUT_MS = 2_000

/** Opens the file to read, and makes none. */
export function findSqliteTables(file: string, only?: string): DatabaseScan {
  const path = resolve(file)
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat)
    throw new NotFoundError(
      `database at sqlite:${path}`,
      'Name the one that your table is in with --db: sqlite:PATH or postgres://….',
    )
  if (!stat.isFile())
    throw new UnusableStoreError(`${path} is not a file. Name the database file itself with --db.`)
  try {
    const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS })
    try {
      return { location: `sqlite:${path}`, tables: readTables(db, only), denied: null }
    } finally {
      db.close()
    }
  } catch (error) {
    throw fileError(error, path) ?? toReadError(storeError(error, path), path)
  }
}

/** Nothing is written here, so that what is said must not be about writing alone. */
function toReadError(error: unknown, path: string): unknown {
  if (!(error instanceof StoreReadOnlyError)) return error
  return new UnusableStoreError(
    `SQLite cannot read ${path} here: it is in WAL mode, in which it makes files beside it also to read, and it may not. ` +
      'Look as somebody who may write to its folder, or copy the file, with those that end in -wal and -shm, and name ' +
      'the copy with --db.',
    { cause: error },
  )
}

function readTables(db: DatabaseSync, only: string | undefined): FoundTable[] {
  const listed = db.prepare(TABLES).all() as { name: string; sql: string }[]
  const ours = ownTables(listed.map(({ name }) => name))
  const readsAllColumns = only !== undefined
  return listed
    .filter(({ name }) => !ours.has(name))
    .filter(({ name }) => only === undefined || name.toLowerCase() === only.toLowerCase())
    .map(({ name, sql }) => ({
      schema: null,
      table: name,
      columns: readColumns(db, { name, sql }, readsAllColumns),
      readError: null,
    }))
}

function readColumns(
  db: DatabaseSync,
  { name: table, sql }: { name: string; sql: string },
  readsAllColumns: boolean,
): FoundColumn[] {
  const rows = db.prepare(COLUMNS).all({ table }) as { name: string; type: string; pk: number }[]
  const isSingle = rows.filter(({ pk }) => pk > 0).length === 1
  return rows.map(({ name, type, pk }) => {
    const column = { name, type: typeOf(type), isPrimaryKey: pk > 0 && isSingle }
    const withoutValues: FoundColumn = { ...column, allowedValues: null, values: null }
    const isStatus = canHoldStatus(withoutValues)
    const readsValues = isStatus || (readsAllColumns && canHoldStatusValues(withoutValues))
    if (tableNameMistake(table) !== null || !readsValues) return withoutValues
    const values = readValues(db, table, name, isStatus ? ROWS_MAX : OTHER_ROWS_MAX)
    return { ...column, allowedValues: allowedValuesIn(sql, name), values }
  })
}

/** SQLite takes any word for a type: what it says is what people meant. */
function typeOf(declared: string): ColumnType {
  const type = declared.toLowerCase()
  if (/bool/.test(type)) return 'boolean'
  if (/date|time/.test(type)) return 'moment'
  if (/json/.test(type)) return 'json'
  if (/uuid|guid/.test(type)) return 'uuid'
  if (/char|text|clob|enum|string/.test(type)) return 'text'
  if (/int|real|doub|floa|num|dec|serial/.test(type)) return 'number'
  return 'other'
}

/** The words of a check on this column, from the statement that made the table. */
function allowedValuesIn(sql: string, column: string): string[] | null {
  for (const [check] of sql.matchAll(/\bCHECK\s*\((?:[^()']|'(?:[^']|'')*'|\([^()]*\))*\)/gi)) {
    const values = valuesInCheck(check, column)
    if (values) return values
  }
  return null
}

function readValues(
  db: DatabaseSync,
  table: string,
  column: string,
  rowsMax: number,
): ValueCount[] {
  const name = quoteIdentifier(column)
  const newest = hasRowid(db, table) ? 'ORDER BY rowid DESC' : ''
  const rows = db.prepare(/* sql */ `
    SELECT substr(word, 1, ${VALUE_LENGTH_MAX}) AS word, count(*) AS count
      FROM (SELECT ${name} AS word FROM ${quoteIdentifier(table)} ${newest} LIMIT ${rowsMax})
     WHERE typeof(word) = 'text' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${VALUES_MAX + 1}
  `)
  return rows.all() as ValueCount[]
}

function hasRowid(db: DatabaseSync, table: string): boolean {
  return db.prepare(HAS_ROWID).get({ table })?.['wr'] === 0
}
