import { OWN_TABLES } from '../../../core/store/sqlite/migrate.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { didYouMean } from '../../../lib/validate/fields.ts'
import { sql, type Connection } from '../../../core/store/sqlite/database.ts'
import {
  type CatalogueColumn,
  indexWarnings,
  MANY_ROWS,
  type MappedField,
  mappingError,
  matchColumns,
} from './columns.ts'
import type { Mapping } from '../mapping.ts'
import { mapStatusValues } from '../status-values.ts'
import type { Catalogue } from './user-table.ts'
import { identifierMistake, quoteIdentifier } from '../identifiers.ts'

const TABLES = sql('adopted:tables')`
  SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
`
const COLUMNS = sql('adopted:columns')`
  SELECT name, type, "notnull" AS not_null, pk, hidden FROM pragma_table_xinfo(:table) WHERE hidden <> 1
`
// By the first column of each index.
const INDEXES = sql('adopted:indexes')`
  SELECT info.name AS "column", list."unique" AS is_unique, list.partial AS is_partial,
         (SELECT count(*) FROM pragma_index_info(list.name)) AS width
    FROM pragma_index_list(:table) AS list
    JOIN pragma_index_info(list.name) AS info ON info.seqno = 0
`

type ColumnRow = { name: string; type: string; not_null: bigint; pk: bigint; hidden: bigint }
type IndexRow = { column: string | null; is_unique: bigint; is_partial: bigint; width: bigint }

/** The type affinity of a column. */
export type Affinity = 'text' | 'integer' | 'real' | 'numeric' | 'none'
export type SqliteColumn = CatalogueColumn & { readonly affinity: Affinity }

export type SqliteCatalogue = Catalogue<SqliteColumn> & {
  /** With the status values as this file stores them. */
  readonly mapping: Mapping
  /** All columns with plain names, for user functions. */
  readonly readable: readonly string[]
}

/** SQLite ignores case in names. */
const isSameName = (name: string, other: string): boolean =>
  name.toLowerCase() === other.toLowerCase()

/** Reads the table from the file's schema. */
export function readSqliteCatalogue(db: Connection, mapping: Mapping): SqliteCatalogue {
  const name = findTable(db, mapping)
  const rows = db.all<ColumnRow>(COLUMNS, { table: name })
  const found = rows.map(toColumn)
  const fitted = booleansAsStored(mapping, found)
  const columns = matchColumns(fitted, name, found, isSameName)
  const id = columns.get('id')!
  if (id.affinity === 'none' && /blob/i.test(id.type)) {
    throw mappingError(mapping, `does not fit ${name}`, [
      `columns.id: ${id.name} is of type ${id.type}, and must be text or a number.`,
    ])
  }
  const indexes = db.all<IndexRow>(INDEXES, { table: name })
  const status = columns.get('status')!
  return {
    mapping: fitted,
    table: quoteIdentifier(name),
    columns,
    isStatusIndexed: indexes.some((one) => one.column === status.name && one.is_partial === 0n),
    // Columns whose names are not plain are left out.
    readable: rows.map((row) => row.name).filter((column) => identifierMistake(column) === null),
    warnings: warningsFor(db, name, rows, columns, indexes),
  }
}

function findTable(db: Connection, mapping: Mapping): string {
  if (mapping.schema !== null && mapping.schema.toLowerCase() !== 'main') {
    throw mappingError(mapping, 'names a schema', [
      mapping.db === null
        ? "it is looked for in Unstuck's own database, which is a SQLite file here, and SQLite has none. If it is in " +
          'PostgreSQL, `db` of the config is not set: is the variable there that it comes from, as DATABASE_URL?'
        : `SQLite has none. Write table: '${mapping.table}'.`,
    ])
  }
  const all = db.all<{ name: string; type: string }>(TABLES)
  const ours = ownTables(all.map(({ name }) => name))
  const tables = all.filter(({ name }) => !ours.has(name))
  const found = tables.find(({ name }) => isSameName(name, mapping.table))
  if (!found) {
    const names = tables.map(({ name }) => name)
    const isUnset =
      ours.size > 0 && names.length === 0
        ? ' It has only tables of Unstuck. If yours are elsewhere, `db` of the config is not set: is the variable there that it comes from, as DATABASE_URL?'
        : ''
    throw new UsageError(
      `adopted.${mapping.name}: there is no table ${mapping.table} in the database${didYouMean(mapping.table, names) || '.'}${isUnset}`,
    )
  }
  if (found.type === 'view') {
    throw new UsageError(
      `adopted.${mapping.name}: ${found.name} is a view, which SQLite cannot write to. Name the table behind it.`,
    )
  }
  return found.name
}

/** SQLite has no booleans: columns hold 1 and 0 for them, unless they hold text. */
function booleansAsStored(mapping: Mapping, columns: readonly SqliteColumn[]): Mapping {
  const status = columns.find(({ name }) => isSameName(name, mapping.columns.status))
  if (!status || status.affinity === 'text') return mapping
  return mapStatusValues(mapping, (value) =>
    value === 'true' ? '1' : value === 'false' ? '0' : value,
  )
}

function toColumn({ name, type, not_null, pk, hidden }: ColumnRow): SqliteColumn {
  return {
    name,
    type: type || 'anything',
    kind: 'any',
    isNullable: not_null === 0n && pk === 0n,
    isComputed: hidden !== 0n,
    labels: null,
    maxLength: null,
    bits: /int|bool/i.test(type) ? 64 : null,
    affinity: affinityOf(type),
  }
}

/** SQLite's rules for the affinity of a declared type, in their order. */
function affinityOf(type: string): Affinity {
  if (/int/i.test(type)) return 'integer'
  if (/char|clob|text/i.test(type)) return 'text'
  if (type === '' || /blob/i.test(type)) return 'none'
  return /real|floa|doub/i.test(type) ? 'real' : 'numeric'
}

function warningsFor(
  db: Connection,
  name: string,
  rows: readonly ColumnRow[],
  columns: ReadonlyMap<MappedField, SqliteColumn>,
  indexes: readonly IndexRow[],
): string[] {
  const [id, status] = [columns.get('id')!, columns.get('status')!]
  const keys = rows.filter(({ pk }) => pk > 0n)
  const isUnique =
    (keys.length === 1 && keys[0]!.name === id.name) ||
    indexes.some(
      (one) =>
        one.column === id.name && one.is_unique === 1n && one.is_partial === 0n && one.width === 1n,
    )
  const isSlow = !indexes.some(({ column }) => column === status.name) && hasManyRows(db, name)
  return indexWarnings(name, id.name, status.name, { isUnique, isSlow })
}

function hasManyRows(db: Connection, name: string): boolean {
  const count = sql('adopted:size')`
  SELECT count(*) AS rows FROM (SELECT 1 FROM ${quoteIdentifier(name)} LIMIT ${MANY_ROWS + 1})
`
  return db.get<{ rows: bigint }>(count)!.rows > BigInt(MANY_ROWS)
}

/** Together they identify a database of Unstuck; a single one may belong to another program. */
const SIGNATURE_TABLES = ['migration', 'worker', 'target', 'run_counters', 'leader']

/** Returns Unstuck's own tables among these. */
export function ownTables(names: readonly string[]): ReadonlySet<string> {
  return new Set(SIGNATURE_TABLES.every((name) => names.includes(name)) ? OWN_TABLES : [])
}
