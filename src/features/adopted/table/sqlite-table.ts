import { RefusedError } from '../../../core/model/errors.ts'
import { containing } from '../../../core/store/like.ts'
import { type Connection, type Sql } from '../../../core/store/sqlite/database.ts'
import {
  type Assignment,
  distinctValuesSql,
  type MappedField,
  mappedFields,
  spellingsOf,
  TIME_FIELDS,
  toAssignments,
} from './columns.ts'
import { formatTimestamp, parseTimestamp, timeFormatFor, type TimeStorage } from './timestamps.ts'
import { type Cell, makeRow, hasContent } from './make-row.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import type { Mapping } from '../mapping.ts'
import { type Affinity, readSqliteCatalogue, type SqliteCatalogue } from './sqlite-catalogue.ts'
import { SqliteUserDatabase } from './sqlite-user-database.ts'
import { registerFunctions, toBindValue, digest, SqliteSql, type BindValues } from './sqlite-sql.ts'
import type { AdoptedRow, AdoptedTable, RowChange, RowFilter } from './table.ts'

type RawRow = Record<string, Cell | Uint8Array>

/** Opens a table of an existing file. */
export async function openSqliteTable(mapping: Mapping, file: string): Promise<AdoptedTable> {
  const db = new SqliteUserDatabase(file, (connection) =>
    registerFunctions(connection, mapping.timeZone),
  )
  try {
    const catalogue = await db.read((connection) => readSqliteCatalogue(connection, mapping))
    return new SqliteTable(db, mapping, catalogue)
  } catch (error) {
    db.close()
    throw error
  }
}

class SqliteTable implements AdoptedTable {
  readonly mapping: Mapping
  readonly warnings: readonly string[]
  readonly #db: SqliteUserDatabase
  readonly #catalogue: SqliteCatalogue
  readonly #sql: SqliteSql
  readonly #statements = new Map<string, Sql>()
  /** Sample values of columns where times are written. */
  readonly #samples = new Map<MappedField, Cell[]>()

  constructor(db: SqliteUserDatabase, mapping: Mapping, catalogue: SqliteCatalogue) {
    this.#db = db
    this.#catalogue = catalogue
    this.#sql = new SqliteSql(mapping, catalogue)
    this.mapping = mapping
    this.warnings = catalogue.warnings
  }

  get isStale(): boolean {
    return this.#db.isStale
  }

  async clock(): Promise<{ now: number; serverStartedAt: null }> {
    return { now: Date.now(), serverStartedAt: null }
  }

  row(key: string): Promise<AdoptedRow | null> {
    const { select, hasId, id } = this.#sql
    const statement = this.#statement(
      'adopted:row',
      /* sql */ `${select} WHERE ${hasId} AND ${id} = :key`,
    )
    return this.#db.read((db) => this.#toRow(db.get<RawRow>(statement, { key })))
  }

  rows(filter: RowFilter): Promise<AdoptedRow[]> {
    const { conditions, values } = this.#conditions(filter)
    const statement = this.#statement(
      'adopted:rows',
      /* sql */ `
      ${this.#sql.select} WHERE ${conditions.join(' AND ')}
       ORDER BY ${this.#sql.timestamp('startedAt')} DESC NULLS LAST, ${this.#sql.id} DESC LIMIT :limit
    `,
    )
    const { statusValues } = filter
    return this.#db.read((db) => {
      const spellings = statusValues && {
        spellings: JSON.stringify(this.#spellings(db, statusValues)),
      }
      return db.many<RawRow>(statement, { ...values, ...spellings }).map((raw) => this.#toRow(raw)!)
    })
  }

  counts(): Promise<{ value: string; group: string | null; count: number }[]> {
    const statement = this.#statement(
      'adopted:counts',
      /* sql */ `
      SELECT coalesce(${this.#sql.cell('status')}, '') AS value, ${this.#sql.cell('group')} AS grouped,
             count(*) AS count
        FROM ${this.#sql.table} WHERE ${this.#sql.hasId} GROUP BY 1, 2 ORDER BY 1, 2
    `,
    )
    return this.#db.read((db) =>
      db.all<{ value: Cell; grouped: Cell; count: bigint }>(statement).map((row) => ({
        value: String(row.value),
        group: row.grouped === null ? null : String(row.grouped),
        count: Number(row.count),
      })),
    )
  }

  keys(after: string | null, limit: number): Promise<string[]> {
    const { table, hasId, id } = this.#sql
    const isAfter = after === null ? '' : `AND ${id} > :after`
    const statement = this.#statement(
      'adopted:keys',
      /* sql */ `
      SELECT ${this.#sql.column('id')} AS key FROM ${table} WHERE ${hasId} ${isAfter} ORDER BY ${id} LIMIT :limit
    `,
    )
    const values: BindValues = after === null ? { limit } : { after, limit }
    return this.#db.read((db) =>
      db.all<{ key: Cell }>(statement, values).map(({ key }) => String(key)),
    )
  }

  change(row: AdoptedRow, change: RowChange): Promise<AdoptedRow | null> {
    const { select, table } = this.#sql
    const { condition, values } = this.#sql.isUnchanged(row)
    const assigned = toAssignments(this.mapping, this.#catalogue.columns, change)
    const sets = [...assigned.keys()].map((field) => `${this.#sql.column(field)} = :to_${field}`)
    const update = this.#statement(
      'adopted:change',
      /* sql */ `UPDATE ${table} SET ${sets.join(', ')} WHERE ${condition}`,
    )
    const still = this.#statement('adopted:still', /* sql */ `${select} WHERE ${condition}`)
    const again = this.#statement(
      'adopted:changed',
      /* sql */ `${select} WHERE ${this.#sql.column('id')} = :id`,
    )
    const only = this.#statement(
      'adopted:only',
      /* sql */ `${select} WHERE ${this.#sql.isUniqueRow}`,
    )
    return this.#db.write((db) => {
      if (sets.length === 0) return this.#toRow(db.get<RawRow>(still, values))
      const written = [...assigned].map(([field, assignment]) => [
        `to_${field}`,
        this.#toStored(db, row, field, assignment),
      ])
      if (db.run(update, { ...values, ...Object.fromEntries(written) }) === 0) {
        // The row matches, but a trigger ignored the change.
        if (db.get<RawRow>(still, values)) return null
        return this.#throwIfUnchanged(row, this.#toRow(db.get<RawRow>(only, { id: values['id']! })))
      }
      // Read again: the result of UPDATE does not include what triggers did.
      return this.#toRow(db.get<RawRow>(again, { id: values['id']! }))
    })
  }

  async close(): Promise<void> {
    this.#db.close()
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

  #spellings(db: Connection, statusValues: readonly string[]): string[] {
    const { table, isStatusIndexed } = this.#catalogue
    const status = this.#sql.column('status')
    const statement = this.#statement(
      'adopted:statuses',
      distinctValuesSql(table, status, isStatusIndexed),
    )
    const found = db.all<{ value: Cell }>(statement)
    return spellingsOf(
      statusValues,
      found.map(({ value }) => String(value)),
    )
  }

  /** Prepared once per text: one for each combination of filters in use. */
  #statement(name: string, text: string): Sql {
    let statement = this.#statements.get(text)
    if (!statement) this.#statements.set(text, (statement = { name, text }))
    return statement
  }

  #conditions(filter: RowFilter): { conditions: string[]; values: BindValues } {
    const { statusValues, source, group, search, startedSince, after, limit } = filter
    const { id, hasId, matchesSearch } = this.#sql
    const status = this.#sql.column('status')
    const at = this.#sql.timestamp('startedAt')
    const conditions = [hasId]
    const values: BindValues = { limit }
    const addCondition = (condition: string, bound: BindValues): void => {
      conditions.push(condition)
      Object.assign(values, bound)
    }
    if (statusValues) addCondition(`${status} IN (SELECT value FROM json_each(:spellings))`, {})
    if (source !== undefined) {
      const column = this.#sql.column('source')
      const orNone = filter.orNoSource ? ` OR ${column} IS NULL OR ${column} = ''` : ''
      addCondition(`(${column} = :source${orNone})`, { source })
    }
    if (group !== undefined) addCondition(`${this.#sql.column('group')} = :group`, { group })
    if (search !== undefined) addCondition(matchesSearch, { search: containing(search) })
    if (startedSince !== undefined) addCondition(`${at} >= :since`, { since: startedSince })
    if (after) {
      const bound = { at: after.startedAt ?? -Number.MAX_VALUE, key: after.key }
      addCondition(`(coalesce(${at}, ${-Number.MAX_VALUE}), ${id}) < (:at, :key)`, bound)
    }
    return { conditions, values }
  }

  #toRow(raw: RawRow | undefined): AdoptedRow | null {
    if (!raw) return null
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
      cell,
      timestamp: (field) => parseTimestamp(cell(field), this.mapping.timeZone),
      hasCheckpoint: hasContent(cell('checkpoint')),
      userRow,
      snapshot,
    })
  }

  #toStored(db: Connection, row: AdoptedRow, field: MappedField, assignment: Assignment): Cell {
    if (assignment.kind !== 'timestamp') return toBindValue(assignment.value)
    const { affinity } = this.#catalogue.columns.get(field)!
    const otherTimes = TIME_FIELDS.map(
      (one) => row.snapshot[this.mapping.columns[one] ?? ''] ?? null,
    )
    const format = timeFormatFor(
      STORAGE_OF_AFFINITY[affinity],
      this.#samplesOf(db, field),
      otherTimes,
    )
    return formatTimestamp(assignment.at, format, this.mapping.timeZone)
  }

  #samplesOf(db: Connection, field: MappedField): Cell[] {
    const known = this.#samples.get(field)
    if (known) return known
    const statement = this.#statement(
      'adopted:sample',
      /* sql */ `
      SELECT ${this.#sql.cell(field)} AS value FROM ${this.#sql.table}
       WHERE ${this.#sql.column(field)} IS NOT NULL LIMIT 20
    `,
    )
    const found = db.all<{ value: Cell }>(statement).map(({ value }) => value)
    if (found.length > 0) this.#samples.set(field, found)
    return found
  }
}

const STORAGE_OF_AFFINITY: Readonly<Record<Affinity, TimeStorage>> = {
  text: 'text',
  numeric: 'either',
  none: 'either',
  integer: 'integer',
  real: 'number',
}

/** Returns a bigint only if a number would not be exact. */
function toNumberIfSafe(value: Cell | Uint8Array): unknown {
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value
}
