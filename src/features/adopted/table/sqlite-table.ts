import { RefusedError } from '../../../core/model/errors.ts'
import type { Connection, Sql } from '../../../core/store/sqlite/database.ts'
import type { Mapping } from '../mapping.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import { fitsInteger, type MappedField, mappedFields, toAssignments } from './columns.ts'
import { readSqliteCatalogue, type SqliteCatalogue } from './sqlite-catalogue.ts'
import { digest, registerFunctions, SqliteSql, SqliteValues, toBindValue } from './sqlite-sql.ts'
import { SqliteUserDatabase } from './sqlite-user-database.ts'
import type { AdoptedRow, AdoptedTable, Cell, RowChange } from './table.ts'
import { parseTimestamp } from './timestamps.ts'
import { makeRow, UserTable } from './user-table.ts'

/** Opens a table of an existing file. */
export async function openSqliteTable(mapping: Mapping, file: string): Promise<AdoptedTable> {
  const db = new SqliteUserDatabase(file, (connection) =>
    registerFunctions(connection, mapping.timeZone),
  )
  try {
    const catalogue = await db.read((connection) => readSqliteCatalogue(connection, mapping))
    return new SqliteTable(db, catalogue)
  } catch (error) {
    db.close()
    throw error
  }
}

class SqliteTable extends UserTable<SqliteValues> {
  readonly #db: SqliteUserDatabase
  readonly #catalogue: SqliteCatalogue
  readonly #sql: SqliteSql
  readonly #statements = new Map<string, Sql>()

  constructor(db: SqliteUserDatabase, catalogue: SqliteCatalogue) {
    const { mapping } = catalogue
    const tableSql = new SqliteSql(mapping, catalogue)
    super(mapping, catalogue, tableSql)
    this.#db = db
    this.#catalogue = catalogue
    this.#sql = tableSql
  }

  get isStale(): boolean {
    return this.#db.isStale
  }

  async clock(): Promise<{ now: number; serverStartedAt: null }> {
    return { now: Date.now(), serverStartedAt: null }
  }

  async close(): Promise<void> {
    this.#db.close()
  }

  protected query<Row>(name: string, text: string, values?: SqliteValues): Promise<Row[]> {
    const statement = this.#statement(name, text)
    return this.#db.read((db) => db.many<Row>(statement, values?.all))
  }

  async change(row: AdoptedRow, change: RowChange): Promise<AdoptedRow | null> {
    const isUnchanged = (values: SqliteValues): string => this.#sql.isUnchanged(row, values)
    const values = new SqliteValues()
    const sets: string[] = []
    for (const [field, to] of toAssignments(this.mapping, this.#catalogue.columns, change)) {
      const value =
        to.kind === 'timestamp'
          ? await this.formatTime(row, field, to.at)
          : toBindValue(field === 'status' ? this.#likeStatusOf(row, to.value) : to.value)
      sets.push(`${this.#sql.column(field)} = ${values.bind(value)}`)
    }
    const { table, key } = this.#sql
    const update = /* sql */ `UPDATE ${table} SET ${sets.join(', ')} WHERE ${isUnchanged(values)}`
    // Repeated while the database is locked, also by a reader at the commit.
    return this.#db.write((db) => {
      if (sets.length === 0) return this.#find(db, 'still', isUnchanged)
      if (db.run(this.#statement('change', update), values.all) === 0) {
        // The row matches, but a trigger ignored the change.
        if (this.#find(db, 'still', isUnchanged)) return null
        const now = this.#find(db, 'only', (bound) => this.#sql.isUnique(row, bound))
        return this.#throwIfUnchanged(row, now)
      }
      // Read again: the result of UPDATE does not include what triggers did.
      return this.#find(db, 'changed', (bound) => `${key} = ${bound.bind(this.#sql.idOf(row))}`)
    })
  }

  async delete(row: AdoptedRow): Promise<boolean> {
    const isUnchanged = (values: SqliteValues): string => this.#sql.isUnchanged(row, values)
    const values = new SqliteValues()
    const text = /* sql */ `DELETE FROM ${this.#sql.table} WHERE ${isUnchanged(values)}`
    return this.#db.write((db) => {
      if (db.run(this.#statement('delete', text), values.all) > 0) return true
      if (!this.#find(db, 'still', isUnchanged)) {
        this.#throwIfUnchanged(
          row,
          this.#find(db, 'only', (bound) => this.#sql.isUnique(row, bound)),
        )
      }
      return false
    })
  }

  /** A status is a number where that of the row is one. */
  #likeStatusOf({ snapshot }: AdoptedRow, value: Cell): Cell {
    const now = snapshot[this.mapping.columns.status]
    const isNumber = typeof now === 'number' || typeof now === 'bigint'
    return isNumber && fitsInteger(String(value), 53) ? Number(value) : value
  }

  #find(
    db: Connection,
    name: string,
    condition: (values: SqliteValues) => string,
  ): AdoptedRow | null {
    const values = new SqliteValues()
    const { table } = this.#sql
    const text = /* sql */ `SELECT ${this.#sql.columns()} FROM ${table} WHERE ${condition(values)}`
    const [raw] = db.many<Record<string, unknown>>(this.#statement(name, text), values.all)
    return raw ? this.toRow(raw) : null
  }

  /** Returns null if the row has changed. Throws if it has not: text that is not UTF-8 never compares equal. */
  #throwIfUnchanged({ key, snapshot }: AdoptedRow, now: AdoptedRow | null): null {
    const isSame =
      now !== null && Object.keys(snapshot).every((name) => now.snapshot[name] === snapshot[name])
    if (!isSame) return null
    throw new RefusedError(
      `Row ${sanitizeLine(key)} of ${this.mapping.name} is not changed: ` +
        'text in a mapped column is not UTF-8, so a change of it cannot be detected.',
    )
  }

  /** Prepared once per text: one for each combination of filters in use. */
  #statement(name: string, text: string): Sql {
    let statement = this.#statements.get(text)
    if (!statement) this.#statements.set(text, (statement = { name: `adopted:${name}`, text }))
    return statement
  }

  protected toRow(raw: Readonly<Record<string, unknown>>): AdoptedRow {
    const cell = (field: MappedField): Cell => toNumberIfSafe(raw[`c:${field}`] ?? null) as Cell
    const snapshot: Record<string, Cell> = {}
    const userRow: Record<string, unknown> = {}
    for (const [field, name] of mappedFields(this.mapping)) {
      const isCheckpoint = field === 'checkpoint'
      snapshot[name] = isCheckpoint ? digest(cell(field)) : cell(field)
      if (!isCheckpoint) userRow[name] = cell(field)
    }
    for (const [name, value] of Object.entries(raw)) {
      if (name.startsWith('u:')) userRow[name.slice(2)] = toNumberIfSafe(value)
    }
    return makeRow({
      mapping: this.mapping,
      cell,
      timestamp: (field) => parseTimestamp(cell(field), this.mapping.timeZone),
      hasCheckpoint: hasContent(cell('checkpoint')),
      userRow,
      snapshot,
    })
  }
}

/** Returns a bigint only if a number would not be exact. */
function toNumberIfSafe(value: unknown): unknown {
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value
}

/** Whether a checkpoint is not empty. */
function hasContent(checkpoint: Cell): boolean {
  return checkpoint !== null && !/^\s*(?:\{\s*\}|null)?\s*$/.test(String(checkpoint))
}
