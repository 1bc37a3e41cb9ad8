import { isUnusable, messageOf, type UnstuckError } from '../core/model/errors.ts'
import type { Emit } from '../core/model/event.ts'
import { newId, type WorkerId } from '../core/model/id.ts'
import { DEFAULT_POLICY } from '../core/model/policy.ts'
import type { PolicyOverrides } from '../core/model/policy-of.ts'
import { heartbeatOptions, threadTransport } from '../core/heartbeat/transport.ts'
import { REAL_CLOCK, type Clock } from '../core/host/clock.ts'
import { HeartbeatClient } from '../core/heartbeat/client.ts'

const RETRY_MS = 2_000
const RETRY_MAX_MS = 30_000

/** Recovers dead workers while a process runs that claims no work itself, such as a server. */
export class BackgroundRecovery {
  readonly #db: string
  readonly #overrides: PolicyOverrides
  readonly #emit: Emit
  readonly #onUnusable: (error: UnstuckError) => void
  readonly #clock: Clock
  readonly #stopping = new AbortController()
  #running: Promise<void> | null = null
  #worker: WorkerId | null = null
  #lastError = ''
  #retryMs = RETRY_MS

  /** `onUnusable`: the database was lost; nothing is retried. */
  constructor(
    db: string,
    overrides: PolicyOverrides,
    emit: Emit,
    clock: Clock = REAL_CLOCK,
    onUnusable: (error: UnstuckError) => void = () => {},
  ) {
    this.#db = db
    this.#overrides = overrides
    this.#emit = emit
    this.#onUnusable = onUnusable
    this.#clock = clock
  }

  /** Its id in the store; null while it is not registered. */
  get worker(): WorkerId | null {
    return this.#worker
  }

  /** Returns at once. While the database is unreachable, retries with growing pauses. */
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
      // Opening it again might create an empty database in place of the lost one.
      if (fatal) return this.#onUnusable(fatal)
      await this.#clock.sleep(this.#retryMs, signal)
      this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MAX_MS)
    }
  }

  /** Runs a heartbeat service until `stop()`. Throws if it cannot continue. */
  async #runHeartbeat(): Promise<null> {
    const ended = Promise.withResolvers<void>()
    const worker = newId()
    const options = heartbeatOptions(worker, '', DEFAULT_POLICY, this.#overrides)
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

  /** Emits an error once, however often it is repeated. */
  #logOnce(message: string): void {
    if (message !== this.#lastError) this.#emit({ type: 'store_error', message })
    this.#lastError = message
  }
}
