import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import type { HeldPresence, Store } from '../store.ts'
import type { Address } from './address.ts'
import { Connection, sql, type Database } from './database.ts'
import { codeOf, storeError } from './errors.ts'
import { hangUp } from './patience.ts'

// The server notices within half a minute when this host is gone; an idle session is what this one is meant to be.
const KEEP = sql(
  'presence:keep',
  /* sql */ `
  SELECT set_config(name, value, false)
    FROM (VALUES ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'),
                 ('tcp_keepalives_count', '3'), ('idle_session_timeout', '0')) AS wanted (name, value)
    JOIN pg_settings USING (name)
`,
)
// Engines that only pretend to lock show no lock.
const LOCK = sql('presence:lock', `SELECT pg_try_advisory_lock($1::bigint) AS locked`)
const SEEN = sql(
  'presence:seen',
  /* sql */ `
  SELECT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted
  ) AS seen
`,
)

const BACK_OFF_FIRST_MS = 100
const BACK_OFF_MAX_MS = 2_000

/** A session of its own that holds an advisory lock: the server frees it when the session ends, however it ends. */
export function presenceVerbs(db: Database): Pick<Store, 'holdPresence'> {
  return {
    holdPresence: async () => {
      if (db.pooled) return NONE
      const lock = new SessionLock(db.address)
      try {
        if (await lock.take()) return lock.held()
      } catch (error) {
        if (codeOf(error) !== NO_SUCH_FUNCTION) {
          await lock.release()
          throw storeError(error, db.address.where)
        }
      }
      await lock.release()
      return NONE
    },
  }
}

const NO_SUCH_FUNCTION = '42883'
const NONE: HeldPresence = { presence: { kind: 'none' }, release: async () => {} }

function unref(client: Client): void {
  ;(client as unknown as { unref(): void }).unref()
}

class SessionLock {
  readonly #address: Address
  /** 63 random bits: as unlikely to be anybody else's as an id. */
  readonly #key = (randomBytes(8).readBigUInt64BE() >> 1n).toString()
  readonly #released = new AbortController()
  #client: Client | null = null

  constructor(address: Address) {
    this.#address = address
  }

  held(): HeldPresence {
    return {
      presence: { kind: 'session', key: this.#key },
      release: () => this.release(),
    }
  }

  /** True when the lock is held and others can see it. */
  async take(): Promise<boolean> {
    const client = new Client(this.#address.config)
    this.#client = client
    client.on('error', () => {})
    await client.connect()
    const connection = new Connection(client, '', false)
    await connection.all(KEEP)
    const [lock] = await connection.all<{ locked: boolean }>(LOCK, [this.#key])
    const [look] = await connection.all<{ seen: boolean }>(SEEN)
    if (!lock!.locked || !look!.seen) return false
    client.once('end', () => void this.#retake())
    // Being present is no reason to stay alive.
    unref(client)
    return true
  }

  async release(): Promise<void> {
    this.#released.abort()
    if (this.#client) await hangUp(this.#client)
  }

  /** The session was lost while its worker lives (server restart, cut connection): takes the same lock again. */
  async #retake(): Promise<void> {
    const { signal } = this.#released
    for (let pauseMs = BACK_OFF_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, BACK_OFF_MAX_MS)) {
      await sleep(pauseMs * (0.5 + Math.random()), undefined, { signal, ref: false }).catch(
        () => {},
      )
      if (signal.aborted) return
      const isBack = await this.take().catch(() => false)
      if (signal.aborted && this.#client) await hangUp(this.#client)
      if (isBack || signal.aborted) return
      // The old session may still hold it, until the server notices that it is dead.
      if (this.#client) await hangUp(this.#client)
    }
  }
}
