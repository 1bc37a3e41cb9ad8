import { DatabaseError, messageOf, UnstuckError } from '../model/errors.ts'
import type { UnstuckEvent } from '../model/event.ts'
import type { ClaimId } from '../model/id.ts'
import { sessionGraceMs, type Presence, type Worker } from '../model/worker.ts'
import type { Store } from '../store/store.ts'
import type { FromService, ToService } from './endpoint.ts'
import { LatencyRecorder } from './latency-recorder.ts'

export type HeartbeatHandlers = {
  emit(event: UnstuckEvent): void
  onLost(claims: ClaimId[]): void
  onCancelled(claims: ClaimId[]): void
  onRecovered(): void
  /** No more beats will come: stop working. */
  onFatal(error: UnstuckError): void
}

/** Where the caretaker lives: on a thread of this process, or in a process beside it. */
export interface HeartbeatTransport {
  post(message: ToService): void
  /** Called once. `ended`: nothing more will be heard. */
  listen(onMessage: (message: FromService) => void, onEnd: (error: Error | null) => void): void
  /** Whether it keeps this program from ending. */
  ref(): void
  unref(): void
}

type HeartbeatTimes = Pick<Worker, 'heartbeatMs' | 'leaseMs'>

const STATS_EVERY_MS = 10_000

/** The worker's side of the caretaker: tells it what is claimed, and hears what was lost. */
export class HeartbeatClient {
  readonly #handlers: HeartbeatHandlers
  readonly #transport: HeartbeatTransport
  readonly #held = new Set<ClaimId>()
  readonly #requested = new Set<ClaimId>()
  readonly #graceMs: number
  readonly #started = Promise.withResolvers<Presence>()
  readonly #stopped = Promise.withResolvers<void>()
  readonly #latencies = new LatencyRecorder(() => this.#onMeasured())
  #lastHeartbeatAt = 0
  #statsSentAt = performance.now()
  #hasNewStats = false
  #isStopping = false

  constructor(transport: HeartbeatTransport, policy: HeartbeatTimes, handlers: HeartbeatHandlers) {
    this.#handlers = handlers
    this.#transport = transport
    this.#graceMs = sessionGraceMs(policy)
    // Who waits for the start hears of it there; otherwise the host does.
    this.#started.promise.catch(() => {})
    transport.listen(
      (message) => this.#receive(message),
      (error) => {
        if (!this.#isStopping) this.#fail(toFatalError(error ?? new Error('the heartbeat ended')))
        this.#stopped.resolve()
      },
    )
  }

  /** Resolves when the worker is registered, heard, and what was dead has been recovered. */
  async started(): Promise<Presence> {
    const presence = await this.#started.promise
    // From here on it lives beside the work and does not keep a finished program from ending; but its own end is waited for.
    if (!this.#isStopping) this.#transport.unref()
    return presence
  }

  /** False while heartbeats do not get through: the worker could be taken for lost before its next one. */
  canClaim(): boolean {
    return performance.now() - this.#lastHeartbeatAt < this.#graceMs / 2
  }

  /** Named before the claim is asked for, so that no beat takes it for one whose answer got lost. */
  requested(claims: readonly ClaimId[]): void {
    for (const id of claims) this.#requested.add(id)
    this.#sendClaims()
  }

  /** The answer is there: these were given, the rest of what was asked for was not. */
  received(requested: readonly ClaimId[], claimed: readonly ClaimId[]): void {
    for (const id of requested) this.#requested.delete(id)
    for (const id of claimed) this.#held.add(id)
    this.#sendClaims()
  }

  released(claim: ClaimId): void {
    this.#held.delete(claim)
    this.#sendClaims()
  }

  /** The store for those who work: how long they wait for it is measured, and sent with a beat now and then. */
  instrument(store: Store): Store {
    return this.#latencies.instrument(store)
  }

  async stop(): Promise<void> {
    if (!this.#isStopping) {
      this.#isStopping = true
      this.#transport.ref()
      this.#sendStats()
      this.#post({ type: 'stop' })
    }
    await this.#stopped.promise
  }

  #receive(message: FromService): void {
    switch (message.type) {
      case 'started':
        return this.#started.resolve(message.presence)
      case 'event':
        return this.#handlers.emit(message.event)
      case 'recovered':
        return this.#handlers.onRecovered()
      case 'fatal':
        return this.#fail(
          new UnstuckError(message.error.code, message.error.message, message.error.data),
        )
      case 'stopped':
        return
      case 'beat':
        this.#lastHeartbeatAt = performance.now()
        if (message.lost.length > 0) this.#handlers.onLost(message.lost)
        if (message.cancelled.length > 0) this.#handlers.onCancelled(message.cancelled)
        if (message.tooOld) this.#fail(VERSION_TOO_OLD)
    }
  }

  #fail(error: UnstuckError): void {
    this.#started.reject(error)
    if (!this.#isStopping) this.#handlers.onFatal(error)
  }

  #sendClaims(): void {
    this.#post({ type: 'claims', held: [...this.#held], requested: [...this.#requested] })
  }

  #onMeasured(): void {
    this.#hasNewStats = true
    if (performance.now() - this.#statsSentAt >= STATS_EVERY_MS) this.#sendStats()
  }

  #sendStats(): void {
    if (!this.#hasNewStats) return
    this.#hasNewStats = false
    this.#statsSentAt = performance.now()
    this.#post({ type: 'stats', stats: this.#latencies.stats })
  }

  #post(message: ToService): void {
    this.#transport.post(message)
  }
}

const VERSION_TOO_OLD = new DatabaseError(
  'E_SCHEMA_NEWER',
  'The database was migrated beyond what this version of unstuck may write to. It hands its work back and ends. Install the newer version.',
  { found: null, known: null },
)

function toFatalError(error: unknown): UnstuckError {
  if (error instanceof UnstuckError) return error
  const message = `The heartbeat failed: ${messageOf(error)}`
  return new UnstuckError('E_UNEXPECTED', message, {}, { cause: error })
}
