import { messageOf, RefusedError, UsageError } from '../../../core/model/errors.ts'
import { parseAddress } from '../../../core/store/postgres/address.ts'
import { Database, type Connection } from '../../../core/store/postgres/database.ts'
import { codeOf } from '../../../core/store/postgres/errors.ts'
import { mayBeStale, refusedChange } from './table.ts'

/** Per process and address, however many of its tables are adopted. */
const DEFAULT_CONNECTIONS = 2
const LOCK_TIMEOUT_MS = 2_000
const CHANGE_TIMEOUT_MS = 5_000
// Shorter than the client's own timeout: a change that the client gave up on must not be committed later.
const TIMEOUTS = `SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; SET LOCAL statement_timeout = ${CHANGE_TIMEOUT_MS}`

type Pool = { readonly db: Database; refCount: number }
const pools = new Map<string, Pool>()

/** A user's own database. Tables at the same address share its connections; the last one to close ends them. */
export class PostgresUserDatabase {
  readonly db: Database
  /** A statement failed in a way that suggests that the table was altered. */
  isStale = false
  readonly #address: string
  #isClosed = false

  constructor(address: string) {
    const pool = pools.get(address) ?? { db: connect(address), refCount: 0 }
    pools.set(address, pool)
    pool.refCount++
    this.#address = address
    this.db = pool.db
  }

  async query<Row>(name: string, text: string, values?: readonly unknown[]): Promise<Row[]> {
    try {
      return await this.db.all<Row>({ name: `adopted:${name}`, text, planned: 'anew' }, values)
    } catch (error) {
      throw this.#toFailure(error)
    }
  }

  /** Runs in its own transaction, with timeouts for locks and triggers. `row` names the row in errors. */
  async write<Row>(text: string, values: readonly unknown[], row: string): Promise<Row[]> {
    const update = { name: 'adopted:change', text, planned: 'anew' } as const
    const work = async (connection: Connection): Promise<Row[]> => {
      await connection.exec('adopted:limits', TIMEOUTS)
      return connection.all<Row>(update, values).catch((error: unknown) => {
        throw timeoutError(error, row) ?? error
      })
    }
    try {
      return await this.db.transaction('adopted:change', work)
    } catch (error) {
      throw this.#toFailure(error)
    }
  }

  async close(): Promise<void> {
    const pool = pools.get(this.#address)
    if (this.#isClosed || !pool) return
    this.#isClosed = true
    pool.refCount--
    if (pool.refCount > 0) return
    pools.delete(this.#address)
    await pool.db.close()
  }

  #toFailure(error: unknown): unknown {
    const failure = explainError(error)
    this.isStale ||= mayBeStale(failure)
    return failure
  }
}

/** Nothing is set or prepared on these connections, so a connection pooler in between works. */
function connect(address: string): Database {
  const parsed = parseAddress(address)
  const connections = parsed.connections ?? DEFAULT_CONNECTIONS
  return new Database(parsed, { writer: '', connections, pooled: true, accepts: 'primary' })
}

/** A lock or a slow trigger concerns this row only: it is not an error of the database. */
function timeoutError(error: unknown, row: string): RefusedError | null {
  switch (codeOf(error)) {
    case '55P03':
      return new RefusedError(
        `${row} is not changed: another transaction has locked it for longer than ${LOCK_TIMEOUT_MS / 1_000} s.`,
      )
    case '57014':
      return new RefusedError(
        `${row} is not changed: the change took longer than ${CHANGE_TIMEOUT_MS / 1_000} s.`,
      )
    default:
      return null
  }
}

/** Explains errors of the user's constraints and triggers, and of tables that were altered meanwhile. */
function explainError(error: unknown): unknown {
  const code = codeOf(error)
  if (/^(23...|22001|44000|P0001)$/.test(code)) {
    return refusedChange(error)
  }
  if (/^(42703|42P01|42804|3F000)$/.test(code)) {
    return new UsageError(
      `The table has changed: ${messageOf(error)}. Check it with \`unstuck doctor\`.`,
      { cause: error },
    )
  }
  return error
}
