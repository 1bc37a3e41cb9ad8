import { createHash } from 'node:crypto'
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { type MappedField, hasUserFunctions, mappedFields, type TimeField } from './columns.ts'
import type { Cell } from './make-row.ts'
import type { Mapping } from '../mapping.ts'
import { parseTimestamp } from './timestamps.ts'
import { quoteIdentifier } from '../identifiers.ts'
import type { SqliteCatalogue } from './sqlite-catalogue.ts'
import type { AdoptedRow } from './table.ts'

export type BindValues = Record<string, SQLInputValue>

/** Registers the function that parses times, so that SQL and JavaScript agree. */
export function registerFunctions(db: DatabaseSync, timeZone: string): void {
  const options = { deterministic: true, directOnly: true, useBigIntArguments: true }
  db.function('unstuck_timestamp', options, (value) =>
    parseTimestamp(value instanceof Uint8Array ? null : value, timeZone),
  )
  db.function('unstuck_digest', options, (value) => digest(value as Cell))
}

/** Parts of the statements on a table. */
export class SqliteSql {
  readonly table: string
  readonly #mapping: Mapping
  readonly #catalogue: SqliteCatalogue

  constructor(mapping: Mapping, catalogue: SqliteCatalogue) {
    this.#mapping = mapping
    this.#catalogue = catalogue
    this.table = catalogue.table
  }

  /** The quoted column; NULL if it is not mapped. */
  column(field: MappedField): string {
    const column = this.#catalogue.columns.get(field)
    return column ? quoteIdentifier(column.name) : 'NULL'
  }

  /** The value that is read and compared; blobs as hexadecimal text. */
  cell(field: MappedField): string {
    const column = this.column(field)
    return `CASE typeof(${column}) WHEN 'blob' THEN hex(${column}) ELSE ${column} END`
  }

  /** The id as text: a column without a type does not convert it for comparisons. */
  get id(): string {
    const { affinity } = this.#catalogue.columns.get('id')!
    return affinity === 'none' ? `CAST(${this.column('id')} AS TEXT)` : this.column('id')
  }

  get hasId(): string {
    return `typeof(${this.column('id')}) IN ('integer', 'real', 'text')`
  }

  timestamp(field: TimeField): string {
    return `unstuck_timestamp(${this.column(field)})`
  }

  get matchesSearch(): string {
    const fields: MappedField[] =
      this.#mapping.kind === 'targets' ? ['key', 'id', 'error'] : ['source', 'id', 'error']
    const tests = fields.map((field) => `${this.column(field)} LIKE :search ESCAPE '\\'`)
    return `(${tests.join(' OR ')})`
  }

  /** Each mapped column as `c:FIELD`, and all columns for user functions as `u:NAME`. */
  get select(): string {
    const cells = [...this.#catalogue.columns.keys()].map(
      (field) => `${this.cell(field)} AS "c:${field}"`,
    )
    const all = hasUserFunctions(this.#mapping) ? this.#catalogue.readable : []
    const user = all.map((name) => `${quoteIdentifier(name)} AS "u:${name}"`)
    return /* sql */ `SELECT ${[...cells, ...user].join(', ')} FROM ${this.table}`
  }

  /** The row with this id, if no other id reads the same: 1 and '1' differ in a column without a type. */
  get isUniqueRow(): string {
    const { affinity } = this.#catalogue.columns.get('id')!
    const id = this.column('id')
    const isAlike =
      affinity === 'none' ? `CAST(other.${id} AS TEXT) = CAST(:id AS TEXT)` : `other.${id} = :id`
    return `${id} = :id AND (SELECT count(*) FROM ${this.table} AS other WHERE ${isAlike}) = 1`
  }

  /** No mapped column has changed since it was read, and no other row has the same id. */
  isUnchanged(row: AdoptedRow): { condition: string; values: BindValues } {
    const conditions = [this.isUniqueRow]
    const values: BindValues = {}
    for (const [field, name] of mappedFields(this.#mapping)) {
      const was = toBindValue(row.snapshot[name] ?? null)
      if (field === 'id') {
        values['id'] = was
        continue
      }
      const now = field === 'checkpoint' ? `unstuck_digest(${this.cell(field)})` : this.cell(field)
      conditions.push(`${now} IS :was_${field}`)
      values[`was_${field}`] = was
    }
    return { condition: conditions.join(' AND '), values }
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
