import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { messageOf, StoreUnavailableError } from '../../model/errors.ts'
import { announce } from '../statement-channel.ts'
import { refuseInUserFunction } from '../user-function.ts'
import { isBusy, isMissingTable, MissingTableError, storeError } from './errors.ts'
import type { StoreClock } from './clock.ts'
import type { OpenFiles } from './open-files.ts'

/** A statement and the name it is announced by. */
export type Sql = { readonly name: string; readonly text: string }
export type Params = Record<string, SQLInputValue>
/** In the order of `?1`, `?2` …: for the few statements whose speed matters. */
export type Positions = readonly SQLInputValue[]

/** Names a statement: sql('claim:due')`SELECT …`. */
export function sql(name: string) {
  return (parts: TemplateStringsArray, ...values: readonly (string | number)[]): Sql => ({
    name,
    text: String.raw({ raw: parts }, ...values),
  })
}

/** One connection with its statements prepared once. */
export class Connection {
  readonly #db: DatabaseSync
  readonly #clock: StoreClock | undefined
  readonly #prepared = new Map<Sql, StatementSync>()

  constructor(db: DatabaseSync, clock?: StoreClock) {
    this.#db = db
    this.#clock = clock
  }

  /** The time, as all processes that use the database have it. */
  now(): number {
    return this.#clock?.now() ?? Date.now()
  }

  get<Row>(statement: Sql, params: Params | Positions = {}): Row | undefined {
    const prepared = this.#prepare(statement)
    return this.#announced(statement.name, () => prepared.get(...bound(params))) as Row | undefined
  }

  /** The same without being announced, for what goes before every transaction. */
  peek<Row>(statement: Sql, params: Params): Row | undefined {
    const prepared = this.#prepare(statement)
    return ours(() => prepared.get(params)) as Row | undefined
  }

  all<Row>(statement: Sql, params: Params = {}): Row[] {
    const prepared = this.#prepare(statement)
    return this.#announced(statement.name, () => prepared.all(params)) as Row[]
  }

  /** The same for thousands of rows: node:sqlite makes objects that are slow to read, so these are made here. */
  many<Row>(statement: Sql, params: Params = {}): Row[] {
    const prepared = this.#prepare(statement)
    prepared.setReturnArrays(true)
    const names = prepared.columns().map(({ name }) => name)
    const tuples = this.#announced(statement.name, () =>
      prepared.all(params),
    ) as unknown as unknown[][]
    return tuples.map((tuple) => {
      const row: Record<string, unknown> = {}
      for (let at = 0; at < names.length; at++) row[names[at]!] = tuple[at]
      return row as Row
    })
  }

  /** Returns how many rows changed. */
  run(statement: Sql, params: Params | Positions = {}): number {
    const prepared = this.#prepare(statement)
    return this.#announced(statement.name, () => Number(prepared.run(...bound(params)).changes))
  }

  /** BEGIN, COMMIT and ROLLBACK, announced under the name of what they frame. */
  frame(statement: Sql, name: string): void {
    const prepared = this.#prepare(statement)
    this.#announced(name, () => prepared.run())
  }

  /** For text that is not one of ours, or more than one statement: migrations, pragmas. */
  exec(text: string, name = 'exec'): void {
    this.#announced(name, () => this.#db.exec(text))
  }

  /** For the user's own statements inside a page's transaction. */
  query(text: string, params: readonly unknown[]): Record<string, unknown>[] {
    return this.#db.prepare(text).all(...(params as SQLInputValue[]))
  }

  /** Never throws, so that the error before it is the one that is reported. */
  rollback(name = 'rollback'): void {
    try {
      this.frame(ROLLBACK, name)
    } catch {
      // An error such as a full disk has rolled back already.
    }
  }

  get isInTransaction(): boolean {
    return this.#db.isTransaction
  }

  close(): void {
    this.#prepared.clear()
    if (this.#db.isOpen) this.#db.close()
  }

  #prepare(statement: Sql): StatementSync {
    let prepared = this.#prepared.get(statement)
    if (!prepared) {
      prepared = ours(() => this.#db.prepare(statement.text))
      this.#prepared.set(statement, prepared)
    }
    return prepared
  }

  #announced<T>(name: string, act: () => T): T {
    announce(name, 'before')
    const result = ours(act)
    announce(name, 'after')
    return result
  }
}

function ours<T>(act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw isMissingTable(error) ? new MissingTableError(messageOf(error), { cause: error }) : error
  }
}

/** node:sqlite takes one object of names, or the values themselves. */
function bound(params: Params | Positions): SQLInputValue[] {
  return (Array.isArray(params) ? params : [params]) as SQLInputValue[]
}

const BEGIN = sql('begin')`BEGIN IMMEDIATE`
const COMMIT = sql('commit')`COMMIT`
const ROLLBACK = sql('rollback')`ROLLBACK`

type Job = {
  name: string
  work: () => unknown
  resolve: (value: never) => void
  reject: (e: unknown) => void
}

// SQLite has one writer at a time and does not wake those that wait. A long busy_timeout blocks the event loop, and its
// pauses grow until a process that commits without a break starves the others. So a waiting writer retries
// without blocking: at first after growing pauses, which lets the current writer finish; later often, so that it gets the
// lock soon however busy the others are.
const RETRY_MS = 4
const RETRY_MAX_MS = 32
const URGENT_AFTER_MS = 200
const URGENT_MS = 5
const BUSY_TIMEOUT_MS = 10_000
/** How long this process writes before its other work has a turn. */
const YIELD_MS = 2

export type OpenConnections = {
  readonly writer: Connection
  readonly reader: Connection
  readonly clock: StoreClock
  readonly files: OpenFiles
}

/**
 * The database file. All writes of this process go through one queue, each in a `BEGIN IMMEDIATE` of its own, so that
 * no other work of the process can slip into a transaction. Reads have their own connection.
 */
export class Database {
  readonly location: string
  readonly reader: Connection
  readonly writer: Connection
  readonly clock: StoreClock
  readonly #files: OpenFiles
  readonly #queue: Job[] = []
  #pumping = false
  #yieldedAt = 0

  constructor(where: string, { writer, reader, clock, files }: OpenConnections) {
    this.location = where
    this.writer = writer
    this.reader = reader
    this.clock = clock
    this.#files = files
  }

  /** To be called once, when the schema is up to date. */
  async startClock(): Promise<void> {
    if (!this.read((db) => this.clock.isOff(db))) return
    // A reader must not fail because of it: the next heartbeat adjusts the clock.
    await this.write('clock', (db) => this.clock.adjust(db)).catch(() => {})
  }

  now(): number {
    return this.read((db) => db.now())
  }

  /** Runs `work` in a transaction: all of it, or nothing. What it throws is thrown here, after a rollback. */
  async write<T>(name: string, work: (db: Connection) => T | Promise<T>): Promise<T> {
    refuseInUserFunction(this)
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ name, work: () => work(this.writer), resolve, reject })
      if (!this.#pumping) void this.#pump()
    })
  }

  read<T>(work: (db: Connection) => T): T {
    try {
      if (this.clock.isStale) this.clock.load(this.reader)
      const result = work(this.reader)
      this.#files.assertInPlace()
      return result
    } catch (error) {
      throw storeError(error, this.location)
    }
  }

  /** Several reads of one moment: no commit of another process comes between them. */
  snapshot<T>(work: (db: Connection) => T): T {
    return this.read((db) => {
      db.exec('BEGIN', 'snapshot')
      try {
        const result = work(db)
        db.exec('COMMIT', 'snapshot:end')
        return result
      } catch (error) {
        db.rollback()
        throw error
      }
    })
  }

  async close(): Promise<void> {
    while (this.#pumping) await sleep(1)
    this.reader.close()
    this.writer.close()
  }

  async #pump(): Promise<void> {
    this.#pumping = true
    for (let job = this.#queue.shift(); job; job = this.#queue.shift()) {
      try {
        const result = await this.#transact(job)
        // Only now: a commit into a file that has lost its name must not be reported as saved.
        this.#files.assertInPlace()
        job.resolve(result as never)
      } catch (error) {
        job.reject(storeError(error, this.location))
      }
      await this.#yield()
    }
    this.#pumping = false
  }

  /** Whatever else the process has to do comes between two transactions. */
  async #yield(): Promise<void> {
    if (performance.now() - this.#yieldedAt < YIELD_MS) return
    await setImmediate()
    this.#yieldedAt = performance.now()
  }

  async #transact(job: Job): Promise<unknown> {
    await this.#begin(job.name)
    try {
      if (this.clock.isStarted) this.clock.load(this.writer)
      const pending = job.work()
      const result = pending instanceof Promise ? await pending : pending
      this.writer.frame(COMMIT, `${job.name}:commit`)
      return result
    } catch (error) {
      this.writer.rollback()
      throw error
    }
  }

  async #begin(name: string): Promise<void> {
    const askedAt = performance.now()
    for (let pauseMs = RETRY_MS; ; pauseMs = Math.min(pauseMs * 2, RETRY_MAX_MS)) {
      try {
        this.writer.frame(BEGIN, `${name}:begin`)
        return
      } catch (error) {
        if (!isBusy(error)) throw error
        const waitedMs = performance.now() - askedAt
        if (waitedMs > BUSY_TIMEOUT_MS) {
          throw new StoreUnavailableError(
            `The database ${this.location} has been locked by another process for ${BUSY_TIMEOUT_MS / 1000} s. ` +
              'Look for a program that keeps a transaction open (a database browser, a backup).',
            { cause: error },
          )
        }
        await sleep((waitedMs > URGENT_AFTER_MS ? URGENT_MS : pauseMs) * (0.5 + Math.random()))
      }
    }
  }
}
