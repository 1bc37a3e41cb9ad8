import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import type { PresenceLock, Store } from '../store.ts'
import {
  type Queryable,
  Connection,
  retryContention,
  sql,
  type Database,
  type Sql,
} from './database.ts'
import { codeOf, isConnectionError, storeError } from './errors.ts'
import { closeClient } from './timeouts.ts'

// The server notices within half a minute when this host is gone; an idle session is what this one is meant to be.
const KEEP = sql('presence:keep')`
  SELECT set_config(name, value, false)
    FROM (VALUES ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'),
                 ('tcp_keepalives_count', '3'), ('idle_session_timeout', '0')) AS wanted (name, value)
    JOIN pg_settings USING (name)
`
// Engines that only pretend to lock show no lock.
const LOCK = sql('presence:lock')`SELECT pg_try_advisory_lock($1::bigint) AS locked`
const SEEN = sql('presence:seen')`
  SELECT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted
  ) AS seen
`

const BACK_OFF_FIRST_MS = 100
const BACK_OFF_MAX_MS = 2_000
const NO_SUCH_FUNCTION = '42883'

/** From here on heartbeats have a connection of their own, and where the server can, it holds an advisory lock. */
export function presenceMethods(db: Database): Pick<Store, 'acquirePresence'> {
  return {
    acquirePresence: async () => {
      const session = new HeartbeatSession(db)
      try {
        await session.start()
      } catch (error) {
        await session.release()
        throw storeError(error, db.address.where)
      }
      db.heartbeats = session
      return {
        presence: session.presence,
        release: async () => {
          if (db.heartbeats === session) db.heartbeats = db
          await session.release()
        },
      }
    },
  }
}

/**
 * A connection outside of the pool, which nothing else uses: heartbeats do not wait for slower statements, and the lock is
 * held for as long as the session lives. The server frees it when the session ends, however it ends.
 */
class HeartbeatSession implements Queryable {
  readonly #db: Database
  /** 63 random bits: as unlikely to be in use as an id. */
  readonly #key = (randomBytes(8).readBigUInt64BE() >> 1n).toString()
  readonly #released = new AbortController()
  /** Not behind a pooler, nor with engines that only pretend to lock. */
  #canLock: boolean
  #isLocked = false
  #client: Client | null = null
  #last: Promise<unknown> = Promise.resolve()

  constructor(db: Database) {
    this.#db = db
    this.#canLock = !db.pooled
  }

  get presence(): PresenceLock['presence'] {
    return this.#canLock ? { kind: 'session', key: this.#key } : { kind: 'none' }
  }

  /** Connects, and finds out whether the lock can be taken and seen by others. */
  async start(): Promise<void> {
    await this.#connect()
    if (!this.#canLock) return
    try {
      await this.#lock()
    } catch (error) {
      if (codeOf(error) !== NO_SUCH_FUNCTION) throw error
    }
    this.#canLock = this.#isLocked
  }

  all<Row>(statement: Sql, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#ask((connection) => connection.all<Row>(statement, values))
  }

  writeCounts<Row>(statement: Sql, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#ask((connection) => connection.writeCounts<Row>(statement, values))
  }

  async release(): Promise<void> {
    this.#released.abort()
    if (this.#client) await closeClient(this.#client)
  }

  #ask<Row>(work: (connection: Connection) => Promise<Row[]>): Promise<Row[]> {
    return retryContention(this.#db.address, () => this.#inTurn(() => this.#use(work)))
  }

  /** A connection runs one statement at a time. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }

  /** After a lost connection on a new one, and with the lock again if it is free. */
  async #use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const client = this.#client ?? (await this.#connect())
    refer(client, true)
    try {
      if (this.#canLock && !this.#isLocked) await this.#lock()
      return await work(this.#on(client))
    } catch (error) {
      if (isConnectionError(error)) this.#lose(client)
      throw error
    } finally {
      // To be present is no reason to stay alive.
      refer(client, false)
    }
  }

  async #connect(): Promise<Client> {
    const { signal } = this.#released
    signal.throwIfAborted()
    const client = await this.#db.connect(async (made) => {
      if (!this.#db.pooled) await this.#on(made).all(KEEP)
    })
    if (signal.aborted) await closeClient(client)
    signal.throwIfAborted()
    client.once('end', () => this.#lose(client))
    this.#client = client
    refer(client, false)
    return client
  }

  async #lock(): Promise<void> {
    const connection = this.#on(this.#client!)
    const [lock] = await connection.all<{ locked: boolean }>(LOCK, [this.#key])
    const [look] = await connection.all<{ seen: boolean }>(SEEN)
    this.#isLocked = lock!.locked && look!.seen
  }

  #on(client: Client): Connection {
    return new Connection(client, `${this.#db.writer}/heartbeat`, !this.#db.pooled)
  }

  /** A server restart, a cut connection: a new one is made with the next heartbeat, or soon without. */
  #lose(client: Client): void {
    if (this.#client !== client) return
    this.#client = null
    this.#isLocked = false
    void closeClient(client)
    if (this.#canLock) void this.#retake()
  }

  /** Until the lock is held again: the server may not yet know that the old session is dead. */
  async #retake(): Promise<void> {
    const { signal } = this.#released
    for (let pauseMs = BACK_OFF_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, BACK_OFF_MAX_MS)) {
      await sleep(pauseMs * (0.5 + Math.random()), undefined, { signal, ref: false }).catch(
        () => {},
      )
      if (signal.aborted || this.#isLocked) return
      await this.#inTurn(() => this.#use(async () => {})).catch(() => {})
    }
  }
}

/** Whether a connection keeps the process from ending. */
function refer(client: Client, keeps: boolean): void {
  const socket = client as unknown as { ref(): void; unref(): void }
  if (keeps) socket.ref()
  else socket.unref()
}
