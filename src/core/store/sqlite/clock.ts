import { bootMs, clockId } from '../../host/identity.ts'
import { sql, type Connection } from './database.ts'
import { LIVE } from './runs.ts'

/** The clocks of the machine. Tests replace them. */
export type HostClock = {
  /** Names the clock that `bootMs` reads; null where there is none that can be relied on. */
  id(): string | null
  /** Runs from boot, also while the machine is suspended. It cannot be set. */
  bootMs(): number
  /** The wall clock, which can be set. */
  wallMs(): number
}

export const HOST_CLOCK: HostClock = { id: clockId, bootMs, wallMs: () => Date.now() }

const LOAD = sql('clock')`SELECT offset_ms, adjusted_ms FROM clock WHERE id = :id`
const FORGET = sql('clock:forget')`DELETE FROM clock WHERE substr(id, 1, 36) <> substr(:id, 1, 36)`
const START = sql('clock:start')`
  INSERT INTO clock (id, offset_ms, adjusted_ms) VALUES (:id, :offset, :boot)
`
const MOVE = sql('clock:move')`
  UPDATE clock SET offset_ms = :offset, adjusted_ms = :boot WHERE id = :id
`
const IS_ANYTHING_LIVE = sql('clock:live')`
  SELECT 1 FROM run WHERE status IN ${LIVE}
  UNION ALL
  SELECT 1 FROM source_lock WHERE worker_id IS NOT NULL
   LIMIT 1
`

/** Closer than this to the wall clock nothing is moved. */
const NEAR_MS = 50
/** While something is live the clock gains or loses at most this part of the time that passes. */
const PART = 10
/** Of a longer time without any process no more than this counts. */
const STRETCH_MS = 10_000
const STALE_MS = 1_000

/**
 * The time of a SQLite database: milliseconds since boot, and an offset that is kept in the database, so that all
 * processes have the same. Setting the wall clock does not make it jump: it follows slowly while a run is live, and at once
 * while none is. So setting a clock does not change how long anything waits or how old it is.
 */
export class StoreClock {
  readonly #host: HostClock
  #offset: number | null = null
  #loadedAt = -Infinity

  constructor(host: HostClock) {
    this.#host = host
  }

  now(): number {
    return this.#offset === null
      ? this.#host.wallMs()
      : Math.round(this.#host.bootMs() + this.#offset)
  }

  /** Before that the time is the wall clock's, as while the schema is made. */
  get isStarted(): boolean {
    return this.#offset !== null
  }

  /** Whether the offset may have been moved by another process since it was read. */
  get isStale(): boolean {
    return this.#offset !== null && this.#host.bootMs() - this.#loadedAt > STALE_MS
  }

  /** Reads the offset that the other processes use. */
  load(tx: Connection): { offset_ms: number; adjusted_ms: number } | undefined {
    const id = this.#host.id()
    if (id === null) return undefined
    const row = tx.peek<{ offset_ms: number; adjusted_ms: number }>(LOAD, { id })
    if (!row) return undefined
    this.#offset = row.offset_ms
    this.#loadedAt = this.#host.bootMs()
    return row
  }

  /** Returns true when it has to be started, or is not where the wall clock is. */
  isOff(tx: Connection): boolean {
    if (this.#host.id() === null) return false
    return this.load(tx) === undefined || Math.abs(this.#errorMs()) >= NEAR_MS
  }

  /** Moves it towards the wall clock, in a transaction that writes. */
  adjust(tx: Connection): void {
    const id = this.#host.id()
    if (id === null) return
    const row = this.load(tx)
    const boot = Math.round(this.#host.bootMs())
    if (!row) {
      tx.run(FORGET, { id })
      this.#offset ??= this.#host.wallMs() - boot
      tx.run(START, { id, offset: this.#offset, boot })
      return
    }
    const error = this.#errorMs()
    if (Math.abs(error) < NEAR_MS) return
    const most = Math.min(boot - row.adjusted_ms, STRETCH_MS) / PART
    const step = tx.get(IS_ANYTHING_LIVE) ? Math.max(-most, Math.min(error, most)) : error
    this.#offset = Math.round(row.offset_ms + step)
    tx.run(MOVE, { id, offset: this.#offset, boot })
  }

  #errorMs(): number {
    return this.#host.wallMs() - this.now()
  }
}
