import { createHash } from 'node:crypto'
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { Millis } from '../../../core/model/time.ts'
import { quoteIdentifier } from '../identifiers.ts'
import type { Mapping } from '../mapping.ts'
import {
  fitsInteger,
  hasUserFunctions,
  type MappedField,
  mappedFields,
  type TimeField,
} from './columns.ts'
import type { Affinity, SqliteCatalogue } from './sqlite-catalogue.ts'
import type { AdoptedRow, Cell, RowFilter } from './table.ts'
import { parseTimestamp, type TimeStorage } from './timestamps.ts'
import type { BoundValues, TableSql } from './user-table.ts'

/** Registers the functions that parse times and digest checkpoints, so that SQL and JavaScript agree. */
export function registerFunctions(db: DatabaseSync, timeZone: string): void {
  const options = { deterministic: true, directOnly: true, useBigIntArguments: true }
  db.function('unstuck_timestamp', options, (value) =>
    parseTimestamp(value instanceof Uint8Array ? null : value, timeZone),
  )
  db.function('unstuck_digest', options, (value) => digest(value as Cell))
}

/** The bound values of one statement. */
export class SqliteValues implements BoundValues {
  readonly all: Record<string, SQLInputValue> = {}
  #count = 0

  bind(value: SQLInputValue): string {
    const name = `p${++this.#count}`
    this.all[name] = value
    return `:${name}`
  }
}

/** Sorts below every time, as a row without one does. */
const NO_TIME = -Number.MAX_VALUE

const STORAGE_OF_AFFINITY: Readonly<Record<Affinity, TimeStorage>> = {
  text: 'text',
  numeric: 'either',
  none: 'either',
  integer: 'integer',
  real: 'number',
}

/** Parts of the statements on a table. */
export class SqliteSql implements TableSql<SqliteValues> {
  readonly table: string
  readonly byTime: string
  readonly #mapping: Mapping
  readonly #catalogue: SqliteCatalogue
  readonly #time: string

  constructor(mapping: Mapping, catalogue: SqliteCatalogue) {
    this.#mapping = mapping
    this.#catalogue = catalogue
    this.table = catalogue.table
    const [start, creation] = (['startedAt', 'createdAt'] as const).map(
      (field) => `unstuck_timestamp(${this.column(field)})`,
    )
    this.#time =
      mapping.columns.createdAt === undefined ? start! : `coalesce(${start}, ${creation})`
    this.byTime = `${this.#time} DESC NULLS LAST, `
  }

  values(): SqliteValues {
    return new SqliteValues()
  }

  column(field: MappedField): string {
    const column = this.#catalogue.columns.get(field)
    return column ? quoteIdentifier(column.name) : 'NULL'
  }

  text(field: MappedField): string {
    return this.column(field)
  }

  /** Blobs as hexadecimal text. */
  cell(field: MappedField): string {
    const column = this.column(field)
    return `CASE typeof(${column}) WHEN 'blob' THEN hex(${column}) ELSE ${column} END`
  }

  /** The id as text: a column without a type does not convert it for comparisons. */
  get id(): string {
    const { affinity } = this.#catalogue.columns.get('id')!
    return affinity === 'none' ? `CAST(${this.key} AS TEXT)` : this.key
  }

  get key(): string {
    return this.column('id')
  }

  get hasId(): string {
    return `typeof(${this.key}) IN ('integer', 'real', 'text')`
  }

  isValidKey(): boolean {
    return true
  }

  isId(key: string, values: SqliteValues, is: '=' | '>' = '='): string {
    return `${this.hasId} AND ${this.id} ${is} ${values.bind(key)}`
  }

  isText(field: MappedField, text: string, values: SqliteValues): string {
    return `${this.column(field)} = ${values.bind(text)}`
  }

  isLike(field: MappedField, pattern: string): string {
    return `${this.column(field)} LIKE ${pattern} ESCAPE '\\'`
  }

  isOneOf(spellings: readonly string[], values: SqliteValues): string {
    const { affinity } = this.#catalogue.columns.get('status')!
    // A column without a type does not convert a text to compare it with a number.
    const alike =
      affinity === 'none'
        ? spellings.flatMap((value) => (fitsInteger(value, 53) ? [value, Number(value)] : value))
        : spellings
    const list = values.bind(JSON.stringify(alike))
    return `${this.column('status')} IN (SELECT value FROM json_each(${list}))`
  }

  isSince(at: Millis, values: SqliteValues): string {
    return `${this.#time} >= ${values.bind(at)}`
  }

  isTime(field: TimeField): string {
    const column = this.column(field)
    return `(typeof(${column}) IN ('integer', 'real') OR ${column} GLOB '[0-9]*')`
  }

  isAfter({ listedAt, key }: NonNullable<RowFilter['after']>, values: SqliteValues): string {
    const after = `(${values.bind(listedAt ?? NO_TIME)}, ${values.bind(key)})`
    return `(coalesce(${this.#time}, ${NO_TIME}), ${this.id}) < ${after}`
  }

  timeStorage(field: MappedField): TimeStorage | null {
    const column = this.#catalogue.columns.get(field)
    return column ? STORAGE_OF_AFFINITY[column.affinity] : null
  }

  /** Each mapped column as `c:FIELD`, and all columns for user functions as `u:NAME`. */
  columns(): string {
    const fields = [...this.#catalogue.columns.keys()]
    const names = hasUserFunctions(this.#mapping) ? this.#catalogue.readable : []
    return [
      ...fields.map((field) => `${this.cell(field)} AS "c:${field}"`),
      ...names.map((name) => `${quoteIdentifier(name)} AS "u:${name}"`),
    ].join(', ')
  }

  /** The row, as long as no other id reads the same: 1 and '1' differ in a column without a type. */
  isUnique(row: AdoptedRow, values: SqliteValues): string {
    const { affinity } = this.#catalogue.columns.get('id')!
    const id = values.bind(this.idOf(row))
    const isAlike =
      affinity === 'none'
        ? `CAST(other.${this.key} AS TEXT) = CAST(${id} AS TEXT)`
        : `other.${this.key} = ${id}`
    return `${this.key} = ${id} AND (SELECT count(*) FROM ${this.table} AS other WHERE ${isAlike}) = 1`
  }

  /** No mapped column has changed since it was read, and no other row has the same id. */
  isUnchanged(row: AdoptedRow, values: SqliteValues): string {
    const conditions = [this.isUnique(row, values)]
    for (const [field, name] of mappedFields(this.#mapping)) {
      if (field === 'id') continue
      const now = field === 'checkpoint' ? `unstuck_digest(${this.cell(field)})` : this.cell(field)
      conditions.push(`${now} IS ${values.bind(toBindValue(row.snapshot[name] ?? null))}`)
    }
    return conditions.join(' AND ')
  }

  /** The exact id of a row, for a bound value. */
  idOf({ snapshot }: AdoptedRow): Cell {
    return toBindValue(snapshot[this.#mapping.columns.id] ?? null)
  }
}

/** Replaces a checkpoint's content, which may be long and is only compared. */
export function digest(value: Cell): string | null {
  return value === null ? null : createHash('sha256').update(String(value)).digest('base64url')
}

/** Binds an integer as such: otherwise it becomes a floating point number. */
export function toBindValue(value: Cell): Cell {
  return Number.isSafeInteger(value) ? BigInt(value as number) : value
}
