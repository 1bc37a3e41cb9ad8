import { closest } from '../../../core/model/closest.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { type Database, sql } from '../../../core/store/postgres/database.ts'
import {
  type CatalogueColumn,
  type ColumnKind,
  indexWarnings,
  MANY_ROWS,
  type MappedField,
  mappingError,
  matchColumns,
  TIME_FIELDS,
  writableFields,
} from './columns.ts'
import type { Mapping } from '../mapping.ts'
import type { Catalogue } from './user-table.ts'

// Without the server's own tables and Unstuck's.
const IS_USER_TABLE = /* sql */ `n.nspname NOT IN ('pg_catalog', 'information_schema', 'unstuck') AND n.nspname NOT LIKE 'pg\\_toast%'`
const TABLE = sql('adopted:table', 'anew')`
  SELECT c.oid::text AS oid, c.relkind AS kind, format('%I.%I', n.nspname, c.relname) AS quoted,
         quote_ident(n.nspname) AS schema, quote_ident(current_user) AS login,
         has_schema_privilege(n.oid, 'USAGE') AS may_use,
         pg_relation_is_updatable(c.oid, true) & 4 = 4 AS is_updatable,
         pg_relation_is_updatable(c.oid, true) & 16 = 16 AS is_deletable,
         has_table_privilege(c.oid, 'DELETE') AS may_delete
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relname = $1 AND c.relkind IN ('r', 'p', 'v', 'f', 'm') AND ${IS_USER_TABLE}
     AND CASE WHEN $2::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = $2 END
`
const TABLES = sql('adopted:tables', 'anew')`
  SELECT n.nspname AS schema, c.relname AS name, pg_table_is_visible(c.oid) AS is_visible
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'p', 'v', 'f') AND ${IS_USER_TABLE}
   ORDER BY is_visible DESC, 1, 2 LIMIT 10000
`
// Domains can be nested: the base type counts, with the constraints of all domains above it.
const COLUMNS = sql('adopted:columns', 'anew')`
  WITH RECURSIVE beneath AS (
    SELECT a.attnum, t.oid, t.typbasetype, t.typtypmod, t.typnotnull
      FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
     WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
     UNION ALL
    SELECT beneath.attnum, t.oid, t.typbasetype, t.typtypmod, t.typnotnull
      FROM beneath JOIN pg_catalog.pg_type t ON t.oid = beneath.typbasetype
  ), domains AS (
    SELECT attnum, max(typtypmod) AS typmod, bool_or(typnotnull) AS not_null FROM beneath GROUP BY attnum
  )
  SELECT a.attname AS name, quote_ident(a.attname) AS quoted,
         format_type(a.atttypid, a.atttypmod) AS type, format_type(base.oid, -1) AS cast_to,
         base.typname AS base,
         NOT (a.attnotnull OR d.not_null) AS "isNullable",
         a.attgenerated <> '' OR NOT pg_column_is_updatable(a.attrelid, a.attnum, true) AS "isComputed",
         has_column_privilege(a.attrelid, a.attnum, 'SELECT') AS may_read,
         has_column_privilege(a.attrelid, a.attnum, 'UPDATE') AS may_write,
         nullif(greatest(a.atttypmod, d.typmod), -1) - 4 AS length_max,
         (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
            FROM pg_catalog.pg_enum e WHERE e.enumtypid = base.oid) AS labels
    FROM pg_catalog.pg_attribute a
    JOIN domains d ON d.attnum = a.attnum
    JOIN beneath bottom ON bottom.attnum = a.attnum AND bottom.typbasetype = 0
    JOIN pg_catalog.pg_type base ON base.oid = bottom.oid
   WHERE a.attrelid = $1::oid
   ORDER BY a.attnum
`
// By the first column of each index.
const INDEXES = sql('adopted:indexes', 'anew')`
  SELECT a.attname AS "column", i.indisunique AND i.indnkeyatts = 1 AND i.indpred IS NULL AS is_unique,
         m.amname = 'btree' AND i.indpred IS NULL AS is_ordered
    FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
    JOIN pg_catalog.pg_am m ON m.oid = c.relam
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
   WHERE i.indrelid = $1::oid AND i.indisvalid
`

const ZONE = sql('adopted:zone', 'anew')`SELECT current_setting('TimeZone') AS zone`

type IndexRow = { column: string; is_unique: boolean; is_ordered: boolean }
type TableRow = {
  oid: string
  kind: 'r' | 'p' | 'v' | 'f' | 'm'
  quoted: string
  schema: string
  login: string
  may_use: boolean
  is_updatable: boolean
  is_deletable: boolean
  may_delete: boolean
}
type ColumnRow = Omit<CatalogueColumn, 'kind' | 'maxLength' | 'bits'> & {
  quoted: string
  cast_to: string
  base: string
  may_read: boolean
  may_write: boolean
  length_max: number | null
}

export type PostgresColumn = CatalogueColumn & {
  /** The quoted name. */
  readonly quoted: string
  /** The type to cast to; of a domain its base type, since some types compare only there. */
  readonly castTo: string
  /** The internal name of the base type. */
  readonly base: string
  readonly canRead: boolean
  readonly canWrite: boolean
}

export type PostgresCatalogue = Catalogue<PostgresColumn> & {
  /** All readable columns, for user functions. */
  readonly readable: readonly PostgresColumn[]
  /** The GRANT that this login lacks to write; null if none. */
  readonly missingGrant: string | null
  /** Why rows cannot be deleted although the mapping allows it; null: they can, or it does not. */
  readonly deleteBlocked: string | null
}

/** Reads the table from the catalogue, with the rights of this login. */
export async function readPostgresCatalogue(
  db: Database,
  mapping: Mapping,
): Promise<PostgresCatalogue> {
  const table = await findTable(db, mapping)
  const all = (await db.all<ColumnRow>(COLUMNS, [table.oid])).map(toColumn)
  const columns = matchColumns(mapping, table.quoted, all, (name, other) => name === other)
  checkReadable(mapping, table, columns)
  const missingGrant = missingWriteGrant(mapping, table, columns)
  const deleteBlocked = mapping.deleteBlocked === null ? missingDeleteRight(mapping, table) : null
  const indexes = await db.all<IndexRow>(INDEXES, [table.oid])
  const status = columns.get('status')!
  return {
    table: table.quoted,
    columns,
    readable: all.filter(({ canRead }) => canRead),
    isStatusIndexed: indexes.some((one) => one.column === status.name && one.is_ordered),
    missingGrant,
    deleteBlocked,
    warnings: [
      ...(deleteBlocked === null ? [] : [deleteBlocked]),
      ...(missingGrant === null
        ? []
        : [`${table.quoted} can be read, but its rows cannot be changed: ${missingGrant}`]),
      ...(await warningsFor(db, table, columns, indexes)),
      ...(mapping.hasExplicitTimeZone ? [] : await timeZoneWarnings(db, table, columns)),
    ],
  }
}

async function findTable(db: Database, mapping: Mapping): Promise<TableRow> {
  const [found] = await db.all<TableRow>(TABLE, [mapping.table, mapping.schema])
  if (!found) throw await tableNotFound(db, mapping)
  if (!found.is_updatable) {
    throw new UsageError(
      `adopted.${mapping.name}: ${found.quoted} is a view that is not updatable. Name its table.`,
    )
  }
  if (!found.may_use) {
    throw new UsageError(
      `adopted.${mapping.name}: the login may not use the schema ${found.schema}. ` +
        `GRANT USAGE ON SCHEMA ${found.schema} TO ${found.login};`,
    )
  }
  return found
}

async function tableNotFound(db: Database, { name, schema, table }: Mapping): Promise<UsageError> {
  const tables = await db.all<{ schema: string; name: string; is_visible: boolean }>(TABLES)
  const beside = tables.filter((one) => (schema === null ? one.is_visible : one.schema === schema))
  const closestTable = closest(
    table,
    beside.map((one) => one.name),
  )
  const elsewhere = tables.find((one) => one.name === table)
  const schemas = closest(
    schema ?? '',
    tables.map((one) => one.schema),
  )
  const suggestion =
    (elsewhere && `${elsewhere.schema}.${table}`) ??
    (closestTable && (schema === null ? closestTable : `${schema}.${closestTable}`)) ??
    (schema !== null && beside.length === 0 && schemas ? `${schemas}.${table}` : null)
  const requested = schema === null ? table : `${schema}.${table}`
  return new UsageError(
    `adopted.${name}: there is no table ${requested} in the database${suggestion ? `; did you mean ${suggestion}?` : '.'}`,
  )
}

function toColumn({ cast_to, may_read, may_write, length_max, ...row }: ColumnRow): PostgresColumn {
  const kind = row.labels ? 'enum' : (KIND_OF_TYPE[row.base] ?? 'other')
  return {
    ...row,
    kind,
    labels: kind === 'boolean' ? ['true', 'false'] : row.labels,
    bits: BITS[row.base] ?? null,
    castTo: cast_to,
    canRead: may_read,
    canWrite: may_write,
    maxLength: row.base === 'varchar' || row.base === 'bpchar' ? length_max : null,
  }
}

const BITS: Readonly<Record<string, number>> = { int2: 16, int4: 32, int8: 64 }
const KIND_OF_TYPE: Readonly<Record<string, ColumnKind>> = {
  text: 'text',
  varchar: 'text',
  bpchar: 'text',
  citext: 'text',
  name: 'text',
  uuid: 'uuid',
  int2: 'integer',
  int4: 'integer',
  int8: 'integer',
  bool: 'boolean',
  numeric: 'number',
  float4: 'number',
  float8: 'number',
  timestamptz: 'timestamptz',
  timestamp: 'timestamp',
  date: 'date',
  json: 'json',
  jsonb: 'json',
}

type MappedColumns = ReadonlyMap<MappedField, PostgresColumn>

function checkReadable(mapping: Mapping, table: TableRow, columns: MappedColumns): void {
  const unreadable = [...columns.values()].filter(({ canRead }) => !canRead)
  if (unreadable.length > 0)
    throw mappingError(mapping, 'needs more rights', [grantOf('SELECT', table, unreadable)])
}

function missingWriteGrant(
  mapping: Mapping,
  table: TableRow,
  columns: MappedColumns,
): string | null {
  const written = writableFields(mapping)
  const unwritable = [...columns]
    .filter(([field, { canWrite }]) => written.includes(field) && !canWrite)
    .map(([, column]) => column)
  return unwritable.length > 0 ? grantOf('UPDATE', table, unwritable) : null
}

function missingDeleteRight(
  { name }: Mapping,
  { quoted, login, is_deletable, may_delete }: TableRow,
): string | null {
  if (!is_deletable) return `Rows of ${name} are not deleted: ${quoted} does not allow it`
  if (may_delete) return null
  return `The login may not delete rows of ${name}: \`GRANT DELETE ON ${quoted} TO ${login};\``
}

function grantOf(
  right: 'SELECT' | 'UPDATE',
  { quoted, login }: TableRow,
  columns: readonly PostgresColumn[],
): string {
  const names = [...new Set(columns.map((column) => column.quoted))].join(', ')
  return `GRANT ${right} (${names}) ON ${quoted} TO ${login};`
}

async function warningsFor(
  db: Database,
  { kind, quoted }: TableRow,
  columns: MappedColumns,
  indexes: readonly IndexRow[],
): Promise<string[]> {
  if (kind !== 'r' && kind !== 'p') return []
  const [id, status] = [columns.get('id')!, columns.get('status')!]
  const isUnique = indexes.some(({ column, is_unique }) => column === id.name && is_unique)
  const hasIndex = indexes.some(({ column }) => column === status.name)
  const isSlow = !hasIndex && (await hasManyRows(db, quoted, id))
  return indexWarnings(quoted, id.quoted, status.quoted, { isUnique, isSlow })
}

/** Programs usually write times without a zone in the server's time zone. */
async function timeZoneWarnings(
  db: Database,
  { quoted }: TableRow,
  columns: MappedColumns,
): Promise<string[]> {
  const unzoned = TIME_FIELDS.flatMap((field) => columns.get(field) ?? [])
    .filter(({ kind }) => kind === 'timestamp' || kind === 'date')
    .map((column) => column.quoted)
  if (unzoned.length === 0) return []
  const [found] = await db.all<{ zone: string }>(ZONE)
  const isUtc = /^(Etc\/)?(UTC|UCT|GMT|Zulu|Universal|Greenwich)$/i.test(found!.zone)
  if (isUtc) return []
  const { zone } = found!
  const names = [...new Set(unzoned)].join(', ')
  return [
    `${quoted}: times in ${names} have no time zone and are read as UTC, but the database uses ${zone}. ` +
      `Set timeZone: '${zone}' if they are in that zone, or timeZone: 'UTC'.`,
  ]
}

async function hasManyRows(
  db: Database,
  table: string,
  { quoted }: PostgresColumn,
): Promise<boolean> {
  const size = sql('adopted:size', 'anew')`
  SELECT count(*)::int AS rows FROM (SELECT ${quoted} FROM ${table} LIMIT ${MANY_ROWS + 1}) AS counted
`
  const [found] = await db.all<{ rows: number }>(size)
  return found!.rows > MANY_ROWS
}
