import { isUnusable, messageOf, type UnstuckError } from '../core/model/errors.ts'
import type { Emit } from '../core/model/event.ts'
import { newId, type WorkerId } from '../core/model/id.ts'
import { DEFAULT_POLICY } from '../core/model/policy.ts'
import { heartbeatOptions, threadTransport } from '../core/heartbeat/transport.ts'
import { REAL_CLOCK, type Clock } from '../core/host/clock.ts'
import { HeartbeatClient } from '../core/heartbeat/client.ts'

const RETRY_MS = 2_000
const RETRY_MAX_MS = 30_000

/** Looks after the dead for as long as a process lives that works on nothing itself, as a server does. */
export class BackgroundRecovery {
  readonly #db: string
  readonly #emit: Emit
  readonly #onUnusable: (error: UnstuckError) => void
  readonly #clock: Clock
  readonly #stopping = new AbortController()
  #running: Promise<void> | null = null
  #worker: WorkerId | null = null
  #lastError = ''
  #retryMs = RETRY_MS

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
    this.#running ??= this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const fatal = await this.#runHeartbeat().catch((error: unknown) => {
        this.#logOnce(messageOf(error))
        return this.#worker !== null && isUnusable(error) ? (error as UnstuckError) : null
      })
      this.#worker = null
      // Opened again it might be made anew, empty, in the place of the one that was lost.
      if (fatal) return this.#onUnusable(fatal)
      await this.#clock.sleep(this.#retryMs, signal)
      this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MAX_MS)
    }
  }

  /** One life of a caretaker: until it is asked to stop, or cannot go on. */
  async #runHeartbeat(): Promise<null> {
    const ended = Promise.withResolvers<void>()
    const worker = newId()
    const options = heartbeatOptions(worker, '', DEFAULT_POLICY)
    const heartbeat = new HeartbeatClient(threadTransport(this.#db, options), DEFAULT_POLICY, {
      emit: this.#emit,
      onFatal: (error) => ended.reject(error),
    })
    heartbeat.started().then(() => {
      this.#worker = worker
      this.#lastError = ''
      this.#retryMs = RETRY_MS
    }, ended.reject)
    const { signal } = this.#stopping
    const end = (): void => ended.resolve()
    signal.addEventListener('abort', end)
    try {
      await ended.promise
      return null
    } finally {
      signal.removeEventListener('abort', end)
      await heartbeat.stop()
    }
  }

  /** Trouble that lasts is said once. */
  #logOnce(message: string): void {
    if (message !== this.#lastError) this.#emit({ type: 'store_error', message })
    this.#lastError = message
  }
}
