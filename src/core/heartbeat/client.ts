import { messageOf, UnstuckError } from '../model/errors.ts'
import type { UnstuckEvent } from '../model/event.ts'
import type { ClaimId } from '../model/id.ts'
import { sessionGraceMs, type Presence, type Worker } from '../model/worker.ts'
import type { Store } from '../store/store.ts'
import type { FromCaretaker, ToCaretaker } from './message-service.ts'
import { Stopwatch } from './latency-recorder.ts'

export type LifeHost = {
  emit(event: UnstuckEvent): void
  onLost(claims: ClaimId[]): void
  onCancelled(claims: ClaimId[]): void
  onRecovered(): void
  /** No more beats will come: stop working. */
  onFatal(error: UnstuckError): void
}

/** Where the caretaker lives: on a thread of this process, or in a process beside it. */
export interface CaretakerSeat {
  tell(message: ToCaretaker): void
  /** Called once. `ended`: nothing more will be heard. */
  listen(heard: (message: FromCaretaker) => void, ended: (error: Error | null) => void): void
  /** Whether it keeps this program from ending. */
  ref(): void
  unref(): void
}

type Beating = Pick<Worker, 'heartbeatMs' | 'leaseMs'>

const STATS_EVERY_MS = 10_000

/** The worker's side of the caretaker: tells it what is claimed, and hears what was lost. */
export class SignsOfLife {
  readonly #host: LifeHost
  readonly #seat: CaretakerSeat
  readonly #held = new Set<ClaimId>()
  readonly #asked = new Set<ClaimId>()
  readonly #graceMs: number
  readonly #started = Promise.withResolvers<Presence>()
  readonly #stopped = Promise.withResolvers<void>()
  readonly #stopwatch = new Stopwatch(() => this.#measured())
  #lastBeatAt = 0
  #statsToldAt = performance.now()
  #hasMeasured = false
  #isStopping = false

  constructor(seat: CaretakerSeat, policy: Beating, host: LifeHost) {
    this.#host = host
    this.#seat = seat
    this.#graceMs = sessionGraceMs(policy)
    // Who waits for the start hears of it there; otherwise the host does.
    this.#started.promise.catch(() => {})
    seat.listen(
      (message) => this.#hear(message),
      (error) => {
        if (!this.#isStopping) this.#fail(unexpected(error ?? new Error('the heartbeat ended')))
        this.#stopped.resolve()
      },
    )
  }

  /** Resolves when the worker is registered, heard, and what was dead has been recovered. */
  async started(): Promise<Presence> {
    const presence = await this.#started.promise
    // From here on it lives beside the work and does not keep a finished program from ending; but its own end is waited for.
    if (!this.#isStopping) this.#seat.unref()
    return presence
  }

  /** False while heartbeats do not get through: the worker could be taken for lost before its next one. */
  canClaim(): boolean {
    return performance.now() - this.#lastBeatAt < this.#graceMs / 2
  }

  /** Named before the claim is asked for, so that no beat takes it for one whose answer got lost. */
  asking(claims: readonly ClaimId[]): void {
    for (const id of claims) this.#asked.add(id)
    this.#tellClaims()
  }

  /** The answer is there: these were given, the rest of what was asked for was not. */
  answered(asked: readonly ClaimId[], given: readonly ClaimId[]): void {
    for (const id of asked) this.#asked.delete(id)
    for (const id of given) this.#held.add(id)
    this.#tellClaims()
  }

  ended(claim: ClaimId): void {
    this.#held.delete(claim)
    this.#tellClaims()
  }

  /** The store for those who work: how long they wait for it is measured, and sent with a beat now and then. */
  timed(store: Store): Store {
    return this.#stopwatch.on(store)
  }

  async stop(): Promise<void> {
    if (!this.#isStopping) {
      this.#isStopping = true
      this.#seat.ref()
      this.#tellStats()
      this.#tell({ type: 'stop' })
    }
    await this.#stopped.promise
  }

  #hear(message: FromCaretaker): void {
    switch (message.type) {
      case 'started':
        return this.#started.resolve(message.presence)
      case 'event':
        return this.#host.emit(message.event)
      case 'recovered':
        return this.#host.onRecovered()
      case 'fatal':
        return this.#fail(
          new UnstuckError(message.error.code, message.error.exitCode, message.error.message),
        )
      case 'stopped':
        return
      case 'beat':
        this.#lastBeatAt = performance.now()
        if (message.lost.length > 0) this.#host.onLost(message.lost)
        if (message.cancelled.length > 0) this.#host.onCancelled(message.cancelled)
        if (message.tooOld) this.#fail(TOO_OLD)
    }
  }

  #fail(error: UnstuckError): void {
    this.#started.reject(error)
    if (!this.#isStopping) this.#host.onFatal(error)
  }

  #tellClaims(): void {
    this.#tell({ type: 'claims', held: [...this.#held], asked: [...this.#asked] })
  }

  #measured(): void {
    this.#hasMeasured = true
    if (performance.now() - this.#statsToldAt >= STATS_EVERY_MS) this.#tellStats()
  }

  #tellStats(): void {
    if (!this.#hasMeasured) return
    this.#hasMeasured = false
    this.#statsToldAt = performance.now()
    this.#tell({ type: 'stats', stats: this.#stopwatch.stats })
  }

  #tell(message: ToCaretaker): void {
    this.#seat.tell(message)
  }
}

const TOO_OLD = new UnstuckError(
  'E_SCHEMA_NEWER',
  9,
  'The database was migrated beyond what this version of unstuck may write to. It hands its work back and ends. Install the newer version.',
)

function unexpected(error: unknown): UnstuckError {
  if (error instanceof UnstuckError) return error
  return new UnstuckError('E_UNEXPECTED', 1, `The heartbeat failed: ${messageOf(error)}`, {
    cause: error,
  })
}
