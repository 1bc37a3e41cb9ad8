import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { messageOf, StoreUnavailableError, UsageError } from '../../../core/model/errors.ts'
import { Connection } from '../../../core/store/sqlite/database.ts'
import { isBusy, sqliteCode, storeError } from '../../../core/store/sqlite/errors.ts'
import { fileError } from '../../../core/store/sqlite/open.ts'
import { mayBeStale, refusedChange } from './table.ts'

const BUSY_TIMEOUT_MS = 5
const RETRY_DELAY_MS = 10
const LOCK_TIMEOUT_MS = 10_000
const SQLITE_ERROR = 1
const SQLITE_CONSTRAINT = 19

/** Registers the functions that the table's SQL calls. */
export type RegisterFunctions = (db: DatabaseSync) => void

/** A user's own database file. It is never created, and no persistent setting is changed. */
export class SqliteUserDatabase {
  readonly #path: string
  readonly #db: Connection
  #isClosed = false
  isStale = false

  constructor(file: string, registerFunctions: RegisterFunctions) {
    this.#path = resolve(file)
    try {
      if (!statSync(this.#path).isFile()) throw new UsageError(`${this.#path} is not a file.`)
      const url = pathToFileURL(this.#path)
      // The file may be deleted after the check.
      url.searchParams.set('mode', 'rw')
      const db = new DatabaseSync(url, { timeout: BUSY_TIMEOUT_MS, readBigInts: true })
      registerFunctions(db)
      this.#db = new Connection(db)
    } catch (error) {
      throw fileError(error, this.#path) ?? storeError(error, this.#path)
    }
  }

  /** Retries while another program holds the lock. */
  async read<T>(work: (db: Connection) => T): Promise<T> {
    const startedAt = performance.now()
    for (;;) {
      try {
        return work(this.#db)
      } catch (error) {
        if (!isBusy(error)) throw this.#toFailure(error)
        if (performance.now() - startedAt > LOCK_TIMEOUT_MS) {
          throw new StoreUnavailableError(
            `The database ${this.#path} has been locked by another process for ${LOCK_TIMEOUT_MS / 1000} s. ` +
              'A program keeps a transaction open, such as a database browser or a backup.',
            { cause: error },
          )
        }
        await sleep(RETRY_DELAY_MS * (0.5 + Math.random()))
      }
    }
  }

  /** The same in a write transaction. */
  write<T>(work: (db: Connection) => T): Promise<T> {
    return this.read((db) => {
      db.exec('BEGIN IMMEDIATE', 'adopted:begin')
      try {
        const result = work(db)
        db.exec('COMMIT', 'adopted:commit')
        return result
      } catch (error) {
        db.rollback('adopted:rollback')
        throw error
      }
    })
  }

  close(): void {
    if (!this.#isClosed) this.#db.close()
    this.#isClosed = true
  }

  #toFailure(error: unknown): unknown {
    const failure = this.#explain(error)
    this.isStale ||= mayBeStale(failure)
    return failure
  }

  #explain(error: unknown): unknown {
    const options = { cause: error }
    switch (sqliteCode(error)) {
      case SQLITE_CONSTRAINT:
        return refusedChange(error)
      case SQLITE_ERROR:
        return new UsageError(
          `The table has changed, or one of its triggers failed: ${messageOf(error)}. Check it with \`unstuck doctor\`.`,
          options,
        )
      default:
        return storeError(error, this.#path)
    }
  }
}
