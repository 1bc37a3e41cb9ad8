import { RefusedError } from '../../../core/model/errors.ts'
import { ms } from '../../../core/store/postgres/database.ts'
import type { Mapping } from '../mapping.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import { type MappedField, mappedFields, toAssignments } from './columns.ts'
import { type PostgresCatalogue, readPostgresCatalogue } from './postgres-catalogue.ts'
import { PostgresSql, type PostgresValues } from './postgres-sql.ts'
import { PostgresUserDatabase } from './postgres-user-database.ts'
import type { AdoptedRow, AdoptedTable, Cell, RowChange } from './table.ts'
import { makeRow, UserTable } from './user-table.ts'

const CLOCK = /* sql */ `
  SELECT ${ms('clock_timestamp()')} AS now, ${ms('pg_postmaster_start_time()')} AS "serverStartedAt"
`

/** The right to delete may be granted meanwhile. */
const RIGHTS_TTL_MS = 60_000

/** Opens a table of a PostgreSQL database. */
export async function openPostgresTable(mapping: Mapping, address: string): Promise<AdoptedTable> {
  const database = new PostgresUserDatabase(address)
  try {
    const catalogue = await readPostgresCatalogue(database.db, mapping)
    return new PostgresTable(database, mapping, catalogue)
  } catch (error) {
    await database.close()
    throw error
  }
}

class PostgresTable extends UserTable<PostgresValues> {
  readonly #database: PostgresUserDatabase
  readonly #catalogue: PostgresCatalogue
  readonly #sql: PostgresSql
  readonly #openedAt = performance.now()
  readonly #isRightMissing: boolean

  constructor(database: PostgresUserDatabase, mapping: Mapping, catalogue: PostgresCatalogue) {
    const tableSql = new PostgresSql(mapping, catalogue)
    const { deleteBlocked } = catalogue
    super(deleteBlocked === null ? mapping : { ...mapping, deleteBlocked }, catalogue, tableSql)
    this.#database = database
    this.#catalogue = catalogue
    this.#sql = tableSql
    this.#isRightMissing = deleteBlocked !== null
  }

  get isStale(): boolean {
    const isDue = this.#isRightMissing && performance.now() > this.#openedAt + RIGHTS_TTL_MS
    return isDue || this.#database.isStale
  }

  async clock(): Promise<{ now: number; serverStartedAt: number | null }> {
    const [clock] = await this.query<{ now: number; serverStartedAt: number | null }>(
      'clock',
      CLOCK,
    )
    return clock!
  }

  protected query<Row>(name: string, text: string, values?: PostgresValues): Promise<Row[]> {
    return this.#database.query<Row>(name, text, values?.all)
  }

  async change(row: AdoptedRow, change: RowChange): Promise<AdoptedRow | null> {
    const { missingGrant } = this.#catalogue
    if (missingGrant !== null) {
      // The right may be granted meanwhile: then the next check finds it.
      this.#database.isStale = true
      throw new RefusedError(`The login may not write to ${this.#sql.table}: ${missingGrant}`)
    }
    const values = this.#sql.values()
    const assigned = toAssignments(this.mapping, this.#catalogue.columns, change)
    const sets: string[] = []
    for (const [field, to] of assigned) {
      const time = to.kind === 'timestamp' ? await this.formatTime(row, field, to.at) : null
      sets.push(this.#sql.assignment(field, to, time, values))
    }
    const { table } = this.#sql
    const isUnchanged = this.#sql.isUnchanged(row, values)
    const columns = this.#sql.columns(values)
    const update = /* sql */ `UPDATE ${table} SET ${sets.join(', ')} WHERE ${isUnchanged} RETURNING ${columns}`
    const select = /* sql */ `SELECT ${columns} FROM ${table} WHERE ${isUnchanged}`
    const label = `Row ${sanitizeLine(row.key)} of ${this.mapping.name}`
    const [raw] =
      sets.length > 0
        ? await this.#database.write<Record<string, unknown>>(update, values.all, label)
        : await this.query<Record<string, unknown>>('still', select, values)
    return raw ? this.toRow(raw) : null
  }

  async delete(row: AdoptedRow): Promise<boolean> {
    const values = this.#sql.values()
    const text = /* sql */ `DELETE FROM ${this.#sql.table} WHERE ${this.#sql.isUnchanged(row, values)} RETURNING 1`
    const label = `Row ${sanitizeLine(row.key)} of ${this.mapping.name}`
    return (await this.#database.write(text, values.all, label)).length > 0
  }

  close(): Promise<void> {
    return this.#database.close()
  }

  protected toRow(raw: Readonly<Record<string, unknown>>): AdoptedRow {
    const cell = (field: MappedField): Cell => (raw[`c:${field}`] ?? null) as string | null
    const names = mappedFields(this.mapping)
    const errorKind = this.#catalogue.columns.get('error')?.kind
    return makeRow({
      mapping: this.mapping,
      cell: (field) =>
        field === 'error' && errorKind === 'json' ? parseJsonString(cell(field)) : cell(field),
      timestamp: (field) => (raw[`t:${field}`] ?? null) as number | null,
      hasCheckpoint: raw['hasCheckpoint'] === true,
      userRow: Object.fromEntries(
        this.#sql.userColumns().map(({ name }, at) => [name, raw[`u:${at}`]]),
      ),
      snapshot: Object.fromEntries(names.map(([field, name]) => [name, cell(field)])),
    })
  }
}

/** Unwraps a JSON string; returns other JSON unchanged. */
function parseJsonString(json: Cell): Cell {
  const value: unknown = typeof json === 'string' ? JSON.parse(json) : null
  return typeof value === 'string' ? value : json
}
