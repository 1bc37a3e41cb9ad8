import { setTimeout as sleep } from 'node:timers/promises'
import { callbackify } from 'node:util'
import {
  Client,
  type ClientBase,
  Pool,
  type PoolClient,
  type QueryConfig,
  type QueryResult,
} from 'pg'
import { messageOf, StoreUnavailableError } from '../../model/errors.ts'
import { announce } from '../statement-channel.ts'
import { refuseInUserFunction } from '../user-function.ts'
import type { Address } from './address.ts'
import { connectTo, currentHost, refuseStandby, tryHosts, type Accepts } from './connect.ts'
import { codeOf, isContention, isPoolBusy, isConnectionError, storeError } from './errors.ts'
import { waitAtMost } from './timeouts.ts'
import { Semaphore } from './semaphore.ts'

/** A statement and the name it is announced by. */
export type Sql = {
  readonly name: string
  readonly text: string
  readonly planned: 'once' | 'anew'
}

/** Names a statement: sql('claim')`WITH …`. `anew`: its best plan depends on the values, so it is not kept between calls. */
export function sql(name: string, planned: Sql['planned'] = 'once') {
  return (parts: TemplateStringsArray, ...values: readonly (string | number)[]): Sql => ({
    name,
    text: String.raw({ raw: parts }, ...values),
    planned,
  })
}

/** A time column as whole milliseconds. In floating point, by way of whole microseconds: exact, and four times as fast. */
export function ms(column: string): string {
  return `floor(round(date_part('epoch', ${column}) * 1e6) / 1000)`
}

/** The other way: milliseconds as a time. */
export function timestamp(value: string): string {
  return `'epoch'::timestamptz + ${value}::float8 * interval '1 millisecond'`
}

/**
 * For the rest of a transaction that asks for few of many rows: with stale statistics the planner may read the whole
 * table to find the first of them.
 */
export async function preferIndexes(connection: Connection, name: string): Promise<void> {
  await connection.exec(`${name}:plan`, 'SET LOCAL enable_seqscan = off')
}

/** What can be asked of one connection, and of the whole pool. */
export interface Queryable {
  /** Runs a statement and returns its rows. */
  all<Row>(statement: Sql, values?: readonly unknown[]): Promise<Row[]>
  /** The same for a statement that changes counters: its `$1` is their writer. */
  writeCounts<Row>(statement: Sql, values?: readonly unknown[]): Promise<Row[]>
}

/** One connection, for as long as a statement or a transaction needs it. */
export class Connection implements Queryable {
  /** The writer of the counters that it changes. */
  readonly writer: string
  readonly #client: ClientBase
  readonly #prepares: boolean
  /** Set when it cannot be used again: the pool then drops it. */
  broken = false
  /** Why the transaction of the user's statements can no longer be committed. */
  failure: unknown

  constructor(client: ClientBase, writer: string, prepares: boolean) {
    this.writer = writer
    this.#client = client
    this.#prepares = prepares
  }

  async all<Row>(statement: Sql, values: readonly unknown[] = []): Promise<Row[]> {
    const { name, text, planned } = statement
    const prepared = this.#prepares && planned === 'once' ? { name } : {}
    const result = await this.#announced(name, { ...prepared, text, values: [...values] })
    return result.rows as Row[]
  }

  writeCounts<Row>(statement: Sql, values: readonly unknown[] = []): Promise<Row[]> {
    return this.all<Row>(statement, [this.writer, ...values])
  }

  /** For text without values: BEGIN, COMMIT, migrations. Returns the command tag of the server. */
  async exec(name: string, text: string): Promise<string> {
    const result = await this.#announced(name, { text })
    return result.command
  }

  /** Never throws: what cannot be rolled back ends with its connection. */
  async rollback(name: string): Promise<void> {
    await this.exec(`${name}:rollback`, 'ROLLBACK').catch(() => (this.broken = true))
  }

  /** For the user's own statements inside a page's transaction. */
  async query(text: string, params: readonly unknown[]): Promise<Record<string, unknown>[]> {
    try {
      const result = await this.#client.query(text, [...params])
      return result.rows as Record<string, unknown>[]
    } catch (error) {
      // What follows a failed statement fails because of that one.
      if (codeOf(error) !== IN_FAILED_TRANSACTION || !this.failure) this.failure = error
      throw this.failure
    }
  }

  async #announced(name: string, query: QueryConfig): Promise<QueryResult> {
    announce(name, 'before')
    const answer = this.#client.query(query)
    announce(name, 'sent')
    const result = await answer
    announce(name, 'after')
    return result
  }
}

const CONTENTION_TRIES = 5
const CONTENTION_PAUSE_MS = 20
const CLOSE_MS = 2_000
/** A process that is stopped in the middle of a transaction must not keep its locks: its targets are to be recovered. */
export const IDLE_MS = 15_000
const BEGIN = `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = ${IDLE_MS}`
// P4: an acknowledged page survives a power loss, whatever the server's default is.
const DURABLE = `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`

const IN_FAILED_TRANSACTION = '25P02'

function notCommitted(cause: unknown): Error {
  const why = cause === undefined ? '' : ` (${messageOf(cause)})`
  return new Error(`A statement in the transaction failed${why}: nothing was saved.`, { cause })
}

/** For the work of a process. */
export const CONNECTIONS_DEFAULT = 2
/** On the thread beside it, or in the watchdog: one for heartbeats, and one to recover others. */
export const HEARTBEAT_CONNECTIONS = 2

export type DatabaseOptions = {
  /** The writer of the counters that it changes. */
  readonly writer: string
  readonly connections: number
  /** Behind a pooler a connection has no state of its own: nothing is prepared or set on it. */
  readonly pooled: boolean
  readonly accepts: Accepts
}

/** The pool. Connections are opened when needed; each has a number, and counters of its own. */
export class Database implements Queryable {
  readonly address: Address
  readonly pooled: boolean
  readonly writer: string
  /** At most. */
  readonly connections: number
  /** Where heartbeats go: a connection of their own, so that they wait for nothing else. */
  heartbeats: Queryable = this
  readonly #pool: Pool
  readonly #accepts: Accepts
  readonly #connectionNumbers = new Map<ClientBase, number>()
  readonly #userSlots: Semaphore

  constructor(address: Address, { writer, connections, pooled, accepts }: DatabaseOptions) {
    this.address = address
    this.pooled = pooled
    this.writer = writer
    this.connections = connections
    this.#accepts = accepts
    // What the user does in a page's transaction may take long: one connection is left for everything else.
    this.#userSlots = new Semaphore(Math.max(1, connections - 1))
    const { connectionTimeoutMillis } = address.hosts[0].config
    this.#pool = new Pool({
      connectionTimeoutMillis,
      max: connections,
      allowExitOnIdle: true,
      Client: clientOf(address),
      verify: (client: PoolClient, done: (error?: Error) => void) =>
        callbackify(() => this.#setUp(client))(done),
    })
    // Without listeners a server restart would end the process. The pool replaces what broke.
    this.#pool.on('error', () => {})
    this.#pool.on('connect', (client) => {
      client.on('error', () => {})
      this.#connectionNumbers.set(client, this.#freeConnectionNumber())
    })
    this.#pool.on('remove', (client) => this.#connectionNumbers.delete(client))
  }

  /** For every new connection, before it is used. */
  async #setUp(client: ClientBase): Promise<void> {
    await refuseStandby(client, this.#accepts)
    await this.#makeDurable(client)
  }

  async #makeDurable(client: ClientBase): Promise<void> {
    if (!this.pooled) await client.query(DURABLE)
  }

  /** A connection of its own, outside of the pool. */
  connect(setUp: (client: Client) => Promise<void>): Promise<Client> {
    return connectTo(this.address, this.#accepts, async (client) => {
      await this.#makeDurable(client)
      await setUp(client)
    })
  }

  all<Row>(statement: Sql, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#retryContention((connection) => connection.all<Row>(statement, values))
  }

  async writeCounts<Row>(statement: Sql, values: readonly unknown[] = []): Promise<Row[]> {
    refuseInUserFunction(this)
    return this.#retryContention((connection) => connection.writeCounts<Row>(statement, values))
  }

  /** Runs `work` in a transaction: all of it, or nothing. What it throws is thrown here, after a rollback. */
  async transaction<T>(name: string, work: (connection: Connection) => Promise<T>): Promise<T> {
    refuseInUserFunction(this)
    return this.#retryContention(async (connection) => {
      await connection.exec(`${name}:begin`, BEGIN)
      try {
        const result = await work(connection)
        const did = await connection.exec(`${name}:commit`, 'COMMIT')
        // COMMIT of a transaction in which a statement failed rolls back without an error.
        if (did !== 'COMMIT') throw notCommitted(connection.failure)
        return result
      } catch (error) {
        if (!isConnectionError(error)) await connection.rollback(name)
        throw error
      }
    })
  }

  /** The same for one in which a function of the user's runs. */
  async userTransaction<T>(name: string, work: (connection: Connection) => Promise<T>): Promise<T> {
    // Before it waits for its turn, which its caller may hold.
    refuseInUserFunction(this)
    return this.#userSlots.run(() => this.transaction(name, work))
  }

  /** Waits for pending statements, but not for a server that no longer responds. */
  async close(): Promise<void> {
    if (this.#pool.ending) return
    await waitAtMost(CLOSE_MS, this.#pool.end())
  }

  #retryContention<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    return retryContention(this.address, () => this.#once(work))
  }

  async #once<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const client = await tryHosts(this.address, () => this.#pool.connect()).catch(this.#explain)
    const writer = `${this.writer}/${this.#connectionNumbers.get(client) ?? 0}`
    const connection = new Connection(client, writer, !this.pooled)
    try {
      return await work(connection)
    } catch (error) {
      if (isConnectionError(error)) connection.broken = true
      throw error
    } finally {
      client.release(connection.broken)
    }
  }

  readonly #explain = (error: unknown): never => {
    if (!isPoolBusy(error)) throw error
    const max = this.connections
    throw new StoreUnavailableError(
      `This process has ${max === 1 ? 'one connection' : `${max} connections`} to ${this.address.where}, and none came free in time. ` +
        'It is tried again. With `connections` in the config it has more.',
      { cause: error },
    )
  }

  #freeConnectionNumber(): number {
    const taken = new Set(this.#connectionNumbers.values())
    for (let lane = 0; ; lane++) if (!taken.has(lane)) return lane
  }
}

/** Repeats what lost against another transaction. */
export async function retryContention<T>({ where }: Address, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!isContention(error) || attempt === CONTENTION_TRIES) throw storeError(error, where)
      await sleep(CONTENTION_PAUSE_MS * attempt * Math.random())
    }
  }
}

/** The pool makes each of its connections with this: to the host that serves now. */
function clientOf(address: Address): new () => Client {
  return class extends Client {
    constructor() {
      super(currentHost(address).config)
    }
  }
}
