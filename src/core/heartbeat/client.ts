import { DatabaseError, messageOf, UnstuckError } from '../model/errors.ts'
import type { UnstuckEvent } from '../model/event.ts'
import type { ClaimedTarget } from '../model/claim.ts'
import type { ClaimId, RunId } from '../model/id.ts'
import { emptyStats, recordLatency, type WorkerStats } from '../model/latency.ts'
import type { Paused } from '../model/run.ts'
import { sessionGraceMs, type Presence, type Worker } from '../model/worker.ts'
import type { FromService, HeartbeatTransport } from './transport.ts'

export type HeartbeatHandlers = {
  emit(event: UnstuckEvent): void
  /** Another worker may hold these claims by now. */
  onLost?(claims: ClaimId[]): void
  /** The runs of these claims were cancelled. */
  onCancelled?(claims: ClaimId[]): void
  /** The worker's source was paused, or is no longer. */
  onPaused?(paused: Paused | null): void
  /** Targets were recovered and can be claimed. */
  onRecovered?(): void
  /** No heartbeat will follow: stop working. */
  onFatal(error: UnstuckError): void
}

const STATS_EVERY_MS = 10_000

/** The worker's side of the heartbeat: reports the held claims to the service, and receives the lost ones. */
export class HeartbeatClient {
  readonly #handlers: HeartbeatHandlers
  readonly #transport: HeartbeatTransport
  readonly #held = new Set<ClaimId>()
  readonly #requested = new Set<ClaimId>()
  readonly #graceMs: number
  readonly #started = Promise.withResolvers<Presence>()
  readonly #stopped = Promise.withResolvers<void>()
  /** All calls since the process started. */
  readonly #stats: WorkerStats = emptyStats()
  #run: RunId | null = null
  #lastHeartbeatAt = 0
  #statsSentAt = performance.now()
  #hasNewStats = false
  #isStopping = false
  #paused: Paused | null = null

  constructor(
    transport: HeartbeatTransport,
    times: Pick<Worker, 'heartbeatMs' | 'leaseMs'>,
    handlers: HeartbeatHandlers,
  ) {
    this.#handlers = handlers
    this.#transport = transport
    this.#graceMs = sessionGraceMs(times)
    // A failed start is reported by `started()` and by `onFatal`, not as an unhandled rejection.
    this.#started.promise.catch(() => {})
    transport.listen(
      (message) => this.#receive(message),
      (error) => {
        if (!this.#isStopping) this.#fail(toFatalError(error ?? new Error('the heartbeat ended')))
        this.#stopped.resolve()
      },
    )
  }

  /** Resolves when the worker is registered, two heartbeats were accepted and dead workers were recovered. */
  async started(): Promise<Presence> {
    const presence = await this.#started.promise
    // From here on the service does not keep a finished program running, except while it stops.
    if (!this.#isStopping) this.#transport.unref()
    return presence
  }

  /** The pause of the worker's source, as of the last heartbeat. The store refuses claims of a paused source in any case. */
  get paused(): Paused | null {
    return this.#paused
  }

  /** False while heartbeats fail: the worker could be declared lost before its next one. */
  canClaim(): boolean {
    return performance.now() - this.#lastHeartbeatAt < this.#graceMs / 2
  }

  /** Call before claiming: a heartbeat then does not treat the claim as one whose reply got lost. */
  requested(claims: readonly ClaimId[]): void {
    for (const id of claims) this.#requested.add(id)
    this.#sendClaims()
  }

  /** Call with the result of a claim: those that were granted out of those that were requested. */
  received(
    requested: readonly ClaimId[],
    claimed: readonly Pick<ClaimedTarget, 'claimId' | 'run'>[],
  ): void {
    for (const id of requested) this.#requested.delete(id)
    for (const { claimId, run } of claimed) {
      this.#held.add(claimId)
      this.#run = run
    }
    this.#sendClaims()
  }

  /** Call when a claim has ended. */
  released(claim: ClaimId): void {
    this.#held.delete(claim)
    this.#sendClaims()
  }

  /** Measures how long a call to the store takes, for the metrics. A call that fails is not counted. */
  async measure<T>(what: keyof WorkerStats, call: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    const result = await call()
    const now = performance.now()
    recordLatency(this.#stats[what], (now - startedAt) / 1_000)
    this.#hasNewStats = true
    if (now - this.#statsSentAt >= STATS_EVERY_MS) this.#sendStats()
    return result
  }

  /** Ends the heartbeats and releases the presence lock. */
  async stop(): Promise<void> {
    if (!this.#isStopping) {
      this.#isStopping = true
      this.#transport.ref()
      this.#sendStats()
      this.#transport.post({ type: 'stop' })
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
        return this.#handlers.onRecovered?.()
      case 'fatal': {
        const { code, message: text, data } = message.error
        return this.#fail(new UnstuckError(code, text, data))
      }
      case 'stopped':
        return
      case 'heartbeat':
        this.#lastHeartbeatAt = performance.now()
        if (message.lost.length > 0) this.#handlers.onLost?.(message.lost)
        if (message.cancelled.length > 0) this.#handlers.onCancelled?.(message.cancelled)
        if (message.paused?.at !== this.#paused?.at) {
          this.#paused = message.paused
          this.#handlers.onPaused?.(message.paused)
        }
        if (message.isOutdated) this.#fail(SCHEMA_TOO_NEW)
    }
  }

  #fail(error: UnstuckError): void {
    this.#started.reject(error)
    if (!this.#isStopping) this.#handlers.onFatal(error)
  }

  #sendClaims(): void {
    this.#transport.post({
      type: 'claims',
      held: [...this.#held],
      requested: [...this.#requested],
      run: this.#run,
    })
  }

  #sendStats(): void {
    if (!this.#hasNewStats) return
    this.#hasNewStats = false
    this.#statsSentAt = performance.now()
    this.#transport.post({ type: 'stats', stats: this.#stats })
  }
}

const SCHEMA_TOO_NEW = new DatabaseError(
  'E_SCHEMA_NEWER',
  'A newer version of unstuck has migrated the database; this version cannot write to it. It releases its work and ends. Install the newer version.',
  { found: null, known: null },
)

function toFatalError(error: unknown): UnstuckError {
  if (error instanceof UnstuckError) return error
  const message = `The heartbeat failed: ${messageOf(error)}`
  return new UnstuckError('E_UNEXPECTED', message, {}, { cause: error })
}
