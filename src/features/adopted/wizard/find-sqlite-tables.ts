import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { NotFound, StoreReadOnly, UnusableStore } from '../../../core/model/errors.ts'
import { storeError } from '../../../core/store/sqlite/errors.ts'
import { fileError } from '../../../core/store/sqlite/open.ts'
import type { Finding } from './find-tables.ts'
import {
  WORD_LENGTH,
  WORDS_MAX,
  wordsInCheck,
  type ColumnType,
  type FoundColumn,
  type FoundTable,
  type FoundWord,
} from './found-table.ts'
import { quoteName, tableMistake } from '../names.ts'
import { ownTables } from '../own-tables.ts'
import { mayHoldStatus, mayHoldWords } from './status-column.ts'

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
const ROWS_OF_OTHERS_MAX = 100_000
const BUSY_MS = 2_000

/** Opens the file to read, and makes none. */
export function findSqliteTables(file: string, only?: string): Finding {
  const path = resolve(file)
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat)
    throw new NotFound(
      `database at sqlite:${path}`,
      'Name the one that your table is in with --db: sqlite:PATH or postgres://….',
    )
  if (!stat.isFile())
    throw new UnusableStore(`${path} is not a file. Name the database file itself with --db.`)
  try {
    const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS })
    try {
      return { where: `sqlite:${path}`, tables: readTables(db, only), barred: null }
    } finally {
      db.close()
    }
  } catch (error) {
    throw fileError(error, path) ?? readError(storeError(error, path), path)
  }
}

/** Nothing is written here, so that what is said must not be about writing alone. */
function readError(error: unknown, path: string): unknown {
  if (!(error instanceof StoreReadOnly)) return error
  return new UnusableStore(
    `SQLite cannot read ${path} here: it is in WAL mode, in which it makes files beside it also to read, and it may not. ` +
      'Look as somebody who may write to its folder, or copy the file, with those that end in -wal and -shm, and name ' +
      'the copy with --db.',
    { cause: error },
  )
}

function readTables(db: DatabaseSync, only: string | undefined): FoundTable[] {
  const listed = db.prepare(TABLES).all() as { name: string; sql: string }[]
  const ours = ownTables(listed.map(({ name }) => name))
  const isWide = only !== undefined
  return listed
    .filter(({ name }) => !ours.has(name))
    .filter(({ name }) => only === undefined || name.toLowerCase() === only.toLowerCase())
    .map(({ name, sql }) => ({
      schema: null,
      table: name,
      columns: readColumns(db, { name, sql }, isWide),
      unread: null,
    }))
}

function readColumns(
  db: DatabaseSync,
  { name: table, sql }: { name: string; sql: string },
  isWide: boolean,
): FoundColumn[] {
  const rows = db.prepare(COLUMNS).all({ table }) as { name: string; type: string; pk: number }[]
  const isSingle = rows.filter(({ pk }) => pk > 0).length === 1
  return rows.map(({ name, type, pk }) => {
    const column = { name, type: typeOf(type), isKey: pk > 0 && isSingle }
    const bare: FoundColumn = { ...column, allowed: null, words: null }
    const isStatus = mayHoldStatus(bare)
    const isRead = isStatus || (isWide && mayHoldWords(bare))
    if (tableMistake(table) !== null || !isRead) return bare
    const words = readWords(db, table, name, isStatus ? ROWS_MAX : ROWS_OF_OTHERS_MAX)
    return { ...column, allowed: allowedIn(sql, name), words }
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
function allowedIn(sql: string, column: string): string[] | null {
  for (const [check] of sql.matchAll(/\bCHECK\s*\((?:[^()']|'(?:[^']|'')*'|\([^()]*\))*\)/gi)) {
    const words = wordsInCheck(check, column)
    if (words) return words
  }
  return null
}

function readWords(db: DatabaseSync, table: string, column: string, rowsMax: number): FoundWord[] {
  const name = quoteName(column)
  const newest = hasRowid(db, table) ? 'ORDER BY rowid DESC' : ''
  const rows = db.prepare(/* sql */ `
    SELECT substr(word, 1, ${WORD_LENGTH}) AS word, count(*) AS count
      FROM (SELECT ${name} AS word FROM ${quoteName(table)} ${newest} LIMIT ${rowsMax})
     WHERE typeof(word) = 'text' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${WORDS_MAX + 1}
  `)
  return rows.all() as FoundWord[]
}

function hasRowid(db: DatabaseSync, table: string): boolean {
  return db.prepare(HAS_ROWID).get({ table })?.['wr'] === 0
}
