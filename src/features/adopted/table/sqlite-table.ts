import { Refused } from '../../../core/model/errors.ts'
import { containing } from '../../../core/store/like.ts'
import { sql, type Connection, type Sql } from '../../../core/store/sqlite/database.ts'
import { type Assignment, assignments } from './assignments.ts'
import { distinctWords, type Field, mappedFields, spellingsOf, TIME_FIELDS } from './columns.ts'
import { formFor, type Storage } from './time-format.ts'
import { type Cell, makeRow, saysSomething } from './make-row.ts'
import { inOneLine } from '../sanitize-line.ts'
import type { Mapping } from '../mapping.ts'
import { readMoment, writeMoment } from './timestamps.ts'
import { type Affinity, readSqliteCatalogue, type SqliteCatalogue } from './sqlite-catalogue.ts'
import { UsersFile } from './sqlite-file.ts'
import { addFunctions, bindable, digest, SqliteSql, type Values } from './sqlite-sql.ts'
import type { AdoptedRow, AdoptedTable, Change, RowFilter } from './table.ts'

type RawRow = Record<string, Cell | Uint8Array>

/** Opens a table in a file that must be there. */
export async function openSqliteTable(mapping: Mapping, file: string): Promise<AdoptedTable> {
  const db = new UsersFile(file, (connection) => addFunctions(connection, mapping.timeZone))
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
  readonly remarks: readonly string[]
  readonly #db: UsersFile
  readonly #catalogue: SqliteCatalogue
  readonly #sql: SqliteSql
  readonly #statements = new Map<string, Sql>()
  /** Of each column that times are written to, a few that stood there. */
  readonly #samples = new Map<Field, Cell[]>()

  constructor(db: UsersFile, mapping: Mapping, catalogue: SqliteCatalogue) {
    this.#db = db
    this.#catalogue = catalogue
    this.#sql = new SqliteSql(mapping, catalogue)
    this.mapping = mapping
    this.remarks = catalogue.remarks
  }

  get isStale(): boolean {
    return this.#db.isStale
  }

  async clock(): Promise<{ now: number; serverStartedAt: null }> {
    return { now: Date.now(), serverStartedAt: null }
  }

  row(key: string): Promise<AdoptedRow | null> {
    const { select, isRow, id } = this.#sql
    const statement = this.#statement(
      'adopted:row',
      /* sql */ `${select} WHERE ${isRow} AND ${id} = :key`,
    )
    return this.#db.read((db) => this.#toRow(db.get<RawRow>(statement, { key })))
  }

  rows(filter: RowFilter): Promise<AdoptedRow[]> {
    const { conditions, values } = this.#filtered(filter)
    const statement = this.#statement(
      'adopted:rows',
      /* sql */ `
      ${this.#sql.select} WHERE ${conditions.join(' AND ')}
       ORDER BY ${this.#sql.moment('startedAt')} DESC NULLS LAST, ${this.#sql.id} DESC LIMIT :limit
    `,
    )
    const { words } = filter
    return this.#db.read((db) => {
      const spellings = words && { spellings: JSON.stringify(this.#spellings(db, words)) }
      return db.many<RawRow>(statement, { ...values, ...spellings }).map((raw) => this.#toRow(raw)!)
    })
  }

  counts(): Promise<{ word: string; group: string | null; count: number }[]> {
    const statement = this.#statement(
      'adopted:counts',
      /* sql */ `
      SELECT coalesce(${this.#sql.cell('status')}, '') AS word, ${this.#sql.cell('group')} AS grouped,
             count(*) AS count
        FROM ${this.#sql.table} WHERE ${this.#sql.isRow} GROUP BY 1, 2 ORDER BY 1, 2
    `,
    )
    return this.#db.read((db) =>
      db.all<{ word: Cell; grouped: Cell; count: bigint }>(statement).map((row) => ({
        word: String(row.word),
        group: row.grouped === null ? null : String(row.grouped),
        count: Number(row.count),
      })),
    )
  }

  keys(after: string | null, limit: number): Promise<string[]> {
    const { table, isRow, id } = this.#sql
    const isAfter = after === null ? '' : `AND ${id} > :after`
    const statement = this.#statement(
      'adopted:keys',
      /* sql */ `
      SELECT ${this.#sql.column('id')} AS key FROM ${table} WHERE ${isRow} ${isAfter} ORDER BY ${id} LIMIT :limit
    `,
    )
    const values: Values = after === null ? { limit } : { after, limit }
    return this.#db.read((db) =>
      db.all<{ key: Cell }>(statement, values).map(({ key }) => String(key)),
    )
  }

  change(row: AdoptedRow, change: Change): Promise<AdoptedRow | null> {
    const { select, table } = this.#sql
    const { condition, values } = this.#sql.stillIs(row)
    const assigned = assignments(this.mapping, this.#catalogue.columns, change)
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
    const only = this.#statement('adopted:only', /* sql */ `${select} WHERE ${this.#sql.isOnly}`)
    return this.#db.write((db) => {
      if (sets.length === 0) return this.#toRow(db.get<RawRow>(still, values))
      const written = [...assigned].map(([field, assignment]) => [
        `to_${field}`,
        this.#written(db, row, field, assignment),
      ])
      if (db.run(update, { ...values, ...Object.fromEntries(written) }) === 0) {
        // It fits, and a trigger let it pass.
        if (db.get<RawRow>(still, values)) return null
        return this.#passedOver(row, this.#toRow(db.get<RawRow>(only, { id: values['id']! })))
      }
      // Read again, because what the user's triggers did to it is not in the answer to the update.
      return this.#toRow(db.get<RawRow>(again, { id: values['id']! }))
    })
  }

  async close(): Promise<void> {
    this.#db.close()
  }

  /** Somebody was faster, or it never fits: what was not UTF-8 is not what it was when it is sent back. */
  #passedOver({ key, stamp }: AdoptedRow, now: AdoptedRow | null): null {
    const isSame =
      now !== null && Object.keys(stamp).every((name) => now.stamp[name] === stamp[name])
    if (!isSame) return null
    throw new Refused(
      `Row ${inOneLine(key)} of ${this.mapping.name} is left as it is: ` +
        'text in a mapped column of it is not UTF-8, so nobody can tell whether it is still the same.',
    )
  }

  #spellings(db: Connection, words: readonly string[]): string[] {
    const { table, isStatusIndexed } = this.#catalogue
    const status = this.#sql.column('status')
    const statement = this.#statement(
      'adopted:words',
      distinctWords(table, status, isStatusIndexed),
    )
    const found = db.all<{ word: Cell }>(statement)
    return spellingsOf(
      words,
      found.map(({ word }) => String(word)),
    )
  }

  /** Prepared once per text: there are as many as there are combinations of filters in use. */
  #statement(name: string, text: string): Sql {
    let statement = this.#statements.get(text)
    if (!statement) this.#statements.set(text, (statement = sql(name, text)))
    return statement
  }

  #filtered(filter: RowFilter): { conditions: string[]; values: Values } {
    const { words, source, group, search, startedSince, after, limit } = filter
    const { id, isRow, found } = this.#sql
    const status = this.#sql.column('status')
    const at = this.#sql.moment('startedAt')
    const conditions = [isRow]
    const values: Values = { limit }
    const where = (condition: string, bound: Values): void => {
      conditions.push(condition)
      Object.assign(values, bound)
    }
    if (words) where(`${status} IN (SELECT value FROM json_each(:spellings))`, {})
    if (source !== undefined) {
      const column = this.#sql.column('source')
      const orNone = filter.orNoSource ? ` OR ${column} IS NULL OR ${column} = ''` : ''
      where(`(${column} = :source${orNone})`, { source })
    }
    if (group !== undefined) where(`${this.#sql.column('group')} = :group`, { group })
    if (search !== undefined) where(found, { search: containing(search) })
    if (startedSince !== undefined) where(`${at} >= :since`, { since: startedSince })
    if (after) {
      const bound = { at: after.startedAt ?? -Number.MAX_VALUE, key: after.key }
      where(`(coalesce(${at}, ${-Number.MAX_VALUE}), ${id}) < (:at, :key)`, bound)
    }
    return { conditions, values }
  }

  #toRow(raw: RawRow | undefined): AdoptedRow | null {
    if (!raw) return null
    const cell = (field: Field): Cell => natural(raw[`c:${field}`] ?? null) as Cell
    const stamp: Record<string, Cell> = {}
    const user: Record<string, unknown> = {}
    for (const [field, name] of mappedFields(this.mapping)) {
      const isCheckpoint = field === 'checkpoint'
      stamp[name] = isCheckpoint ? digest(cell(field)) : cell(field)
      if (!isCheckpoint) user[name] = cell(field)
    }
    for (const [name, value] of Object.entries(raw)) {
      if (name.startsWith('u:')) user[name.slice(2)] = natural(value)
    }
    return makeRow({
      cell,
      moment: (field) => readMoment(cell(field), this.mapping.timeZone),
      hasCheckpoint: saysSomething(cell('checkpoint')),
      user,
      stamp,
    })
  }

  #written(db: Connection, row: AdoptedRow, field: Field, assignment: Assignment): Cell {
    if (assignment.kind !== 'moment') return bindable(assignment.value)
    const { affinity } = this.#catalogue.columns.get(field)!
    const near = TIME_FIELDS.map((one) => row.stamp[this.mapping.columns[one] ?? ''] ?? null)
    const form = formFor(STORAGE[affinity], this.#sampled(db, field), near)
    return writeMoment(assignment.at, form, this.mapping.timeZone)
  }

  #sampled(db: Connection, field: Field): Cell[] {
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

const STORAGE: Readonly<Record<Affinity, Storage>> = {
  text: 'text',
  numeric: 'either',
  none: 'either',
  integer: 'integer',
  real: 'number',
}

/** As the user's own programs get it: a bigint only where a number would not be exact. */
function natural(value: Cell | Uint8Array): unknown {
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value
}
