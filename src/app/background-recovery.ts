import { isUnusable, messageOf, type UnstuckError } from '../core/model/errors.ts'
import type { Emit } from '../core/model/event.ts'
import { newId, type WorkerId } from '../core/model/id.ts'
import { DEFAULT_POLICY } from '../core/model/policy.ts'
import { VERSION } from '../core/host/version.ts'
import { threadSeat } from '../core/heartbeat/transport.ts'
import { REAL_CLOCK, type Clock } from '../core/host/clock.ts'
import { caretaking } from '../core/recovery/monitor.ts'
import { SignsOfLife } from '../core/heartbeat/client.ts'

const AGAIN_MS = 2_000
const AGAIN_MAX_MS = 30_000

/** Looks after the dead for as long as a process lives that works on nothing itself, as a server does. */
export class Attendant {
  readonly #db: string
  readonly #emit: Emit
  readonly #onUnusable: (error: UnstuckError) => void
  readonly #clock: Clock
  readonly #stopping = new AbortController()
  #running: Promise<void> | null = null
  #worker: WorkerId | null = null
  #trouble = ''
  #againMs = AGAIN_MS

  /** `onUnusable`: the database was lost under it, and nothing is tried again. */
  constructor(
    db: string,
    emit: Emit,
    clock: Clock = REAL_CLOCK,
    onUnusable: (error: UnstuckError) => void = () => {},
  ) {
    this.#db = db
    this.#emit = emit
    this.#onUnusable = onUnusable
    this.#clock = clock
  }

  /** As which the store knows it; null while it does not. */
  get worker(): WorkerId | null {
    return this.#worker
  }

  /** Returns at once. While the database is away it is tried again and again, ever more seldom. */
  start(): void {
    this.#running ??= this.#attend()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #attend(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const lost = await this.#live().catch((error: unknown) => {
        this.#complain(messageOf(error))
        return this.#worker !== null && isUnusable(error) ? (error as UnstuckError) : null
      })
      this.#worker = null
      // Opened again it might be made anew, empty, in the place of the one that was lost.
      if (lost) return this.#onUnusable(lost)
      await this.#clock.sleep(this.#againMs, signal)
      this.#againMs = Math.min(2 * this.#againMs, AGAIN_MAX_MS)
    }
  }

  /** One life of a caretaker: until it is asked to stop, or cannot go on. */
  async #live(): Promise<null> {
    const ended = Promise.withResolvers<void>()
    const worker = newId()
    const options = { worker, source: '', version: VERSION, ...caretaking(DEFAULT_POLICY) }
    const life = new SignsOfLife(threadSeat(this.#db, options), DEFAULT_POLICY, {
      emit: this.#emit,
      onLost: () => {},
      onCancelled: () => {},
      onRecovered: () => {},
      onFatal: (error) => ended.reject(error),
    })
    life.started().then(() => {
      this.#worker = worker
      this.#trouble = ''
      this.#againMs = AGAIN_MS
    }, ended.reject)
    const { signal } = this.#stopping
    const end = (): void => ended.resolve()
    signal.addEventListener('abort', end)
    try {
      await ended.promise
      return null
    } finally {
      signal.removeEventListener('abort', end)
      await life.stop()
    }
  }

  /** Trouble that lasts is said once. */
  #complain(message: string): void {
    if (message !== this.#trouble) this.#emit({ type: 'store_trouble', message })
    this.#trouble = message
  }
}
