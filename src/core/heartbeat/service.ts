import type { ObserverHealth } from '../decide/liveness.ts'
import { isUnusable, messageOf, UnstuckError } from '../model/errors.ts'
import type { UnstuckEvent } from '../model/event.ts'
import { shortId, type ClaimId, type WorkerId } from '../model/id.ts'
import type { WorkerStats } from '../model/latency.ts'
import { SWEEP_INTERVAL_MS } from '../model/policy.ts'
import { isLive } from '../model/run.ts'
import type { Presence } from '../model/worker.ts'
import { thisProcess } from '../host/identity.ts'
import type { Heartbeat, HeartbeatResult, PresenceLock, Store } from '../store/store.ts'
import type { Clock } from '../host/clock.ts'
import { Monitor } from '../recovery/monitor.ts'
import { Sampler } from './sampler.ts'
import { sweep } from '../recovery/sweep.ts'

export type HeartbeatOptions = {
  readonly worker: WorkerId
  /** Empty for a process that begins runs by itself, of any source. */
  readonly source: string
  readonly version: string
  readonly heartbeatMs: number
  readonly leaseMs: number
  /** How often all runs are looked at, not only the claims of the dead. */
  readonly monitorEveryMs: number
  /** Before the first such look: others that start at the same moment may be about to show themselves. */
  readonly graceMs: number
}

/** What the caretaker needs to know, and whom it tells. */
export type HeartbeatHost = {
  /** Claims the process holds, and those it has asked for without an answer yet. */
  claims(): { held: readonly ClaimId[]; requested: readonly ClaimId[] }
  /** How long the main thread has been busy without a break. */
  loopLagMs(): number
  /** What the process has measured, when there is something new since the last time it was asked. */
  takeStats(): WorkerStats | undefined
  emit(event: UnstuckEvent): void
  /** A beat was accepted. `lost`: claims that are no longer ours. */
  onHeartbeat(beat: { lost: ClaimId[]; cancelled: ClaimId[]; tooOld: boolean }): void
  /** Targets came free. */
  onRecovered(): void
  /** It cannot go on: the worker must stop. */
  onFatal(error: unknown): void
}

const LEADER_MS = 2 * SWEEP_INTERVAL_MS
const SETTLE_EVERY_MS = 1_000
const JOURNAL_HEARTBEAT_EVERY_MS = 10_000
/** Of many that stop together, one need look every so often. */
const LAST_SAMPLE_WITHIN_MS = 10_000
const LAST_SAMPLE_TIMEOUT_MS = 1_000

/**
 * Keeps a worker's signs of life and looks after the dead: it holds the presence, beats, and sweeps when it is its
 * turn. It runs on a thread of its own or in the guardian, so that a long page or a busy event loop never looks like death.
 */
export class HeartbeatService {
  readonly #store: Store
  readonly #options: HeartbeatOptions
  readonly #host: HeartbeatHost
  readonly #clock: Clock
  readonly #stopping = new AbortController()
  readonly #monitor: Monitor
  readonly #sampler: Sampler
  #presence: PresenceLock | null = null
  #jobs: Promise<unknown> = Promise.resolve()
  #consecutiveHeartbeats = 0
  #lastHeartbeatAt = 0
  /** Start of the time without a gap; before the first gap there is no limit to it. */
  #stableSince = -Infinity
  /** Start of the time without a gap, from the first heartbeat that was accepted. */
  #connectedSince = Infinity
  #serverUpMs = Infinity
  #storeErrorSince: number | null = null

  constructor(store: Store, options: HeartbeatOptions, host: HeartbeatHost, clock: Clock) {
    this.#store = store
    this.#options = options
    this.#host = host
    this.#clock = clock
    const actor = `worker ${shortId(options.worker)}`
    this.#monitor = new Monitor({ store, actor }, (event) => host.emit(event))
    this.#sampler = new Sampler(store, options.worker, clock)
  }

  /** Takes the lock, registers, is heard twice, and recovers what is dead. Then goes on by itself. */
  async start(): Promise<Presence> {
    const { worker, source, version, heartbeatMs, leaseMs } = this.#options
    this.#presence = await this.#store.acquirePresence(worker)
    const { presence } = this.#presence
    const process = thisProcess()
    await this.#store.registerWorker({
      id: worker,
      source,
      process,
      presence,
      version,
      heartbeatMs,
      leaseMs,
    })
    await this.#heartbeat()
    await this.#heartbeat()
    await this.#sweep().catch((error: unknown) => this.#onRecoveryError(error))
    this.#jobs = Promise.all([
      this.#repeat(
        heartbeatMs,
        () => this.#heartbeat(),
        (error) => this.#onStoreError(error),
      ),
      this.#repeat(
        SWEEP_INTERVAL_MS,
        () => this.#sweep(),
        (error) => this.#onRecoveryError(error),
      ),
      this.#runMonitor(),
      this.#sampler.run(this.#stopping.signal, (error) => this.#onRecoveryError(error)),
    ])
    return presence
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#jobs
    await this.#sendLastStats().catch(() => {})
    // Whoever comes next need not wait for proof. If the store is away, the freed lock is the proof.
    await this.#store
      .retireWorker(this.#options.worker)
      .catch((error: unknown) => this.#onStoreError(error))
    const isSettled = await this.#store.settle().then(
      () => true,
      (error: unknown) => {
        this.#onStoreError(error)
        return false
      },
    )
    await this.#presence?.release()
    if (isSettled) await this.#takeLastSample()
  }

  /** The last stretch of what ended with this process; nobody may be left to see it a minute from now. Nobody waits for it. */
  async #takeLastSample(): Promise<void> {
    const taken = new AbortController()
    await Promise.race([
      this.#store.takeSample({ unlessWithinMs: LAST_SAMPLE_WITHIN_MS }).catch(() => {}),
      this.#clock.sleep(LAST_SAMPLE_TIMEOUT_MS, taken.signal),
    ])
    taken.abort()
  }

  async #repeat(
    intervalMs: number,
    job: () => Promise<void>,
    onError: (error: unknown) => void,
  ): Promise<void> {
    const { signal } = this.#stopping
    // A steady pace: the time an act takes counts, a late one is not made up for.
    for (
      let next = this.#clock.now() + intervalMs;
      ;
      next = Math.max(next + intervalMs, this.#clock.now())
    ) {
      await this.#clock.sleep(next - this.#clock.now(), signal)
      if (signal.aborted) return
      try {
        await job()
      } catch (error) {
        onError(error)
      }
    }
  }

  async #heartbeat(): Promise<void> {
    const { held } = this.#host.claims()
    const loopLagMs = this.#host.loopLagMs()
    let answer: HeartbeatResult
    try {
      answer = await this.#store.heartbeat(this.#heartbeatRequest(this.#host.takeStats()))
    } catch (error) {
      this.#consecutiveHeartbeats = 0
      throw error
    }
    this.#onHeartbeat(answer, held, loopLagMs)
    await this.#unpark(answer.unpark)
  }

  /** Puts targets back that were parked because this worker seemed lost. */
  async #unpark(parked: HeartbeatResult['unpark']): Promise<void> {
    const actor = `worker ${shortId(this.#options.worker)}`
    const because = 'it was parked for a crash that was none: its worker sends heartbeats again'
    const options = {
      action: 'unpark',
      statuses: ['parked'],
      reopen: false,
      dryRun: false,
    } as const
    for (const { run, target } of parked) {
      await this.#store
        .replan({ run, targets: [target], actor, because, ...options })
        .catch((error: unknown) => this.#onRecoveryError(error))
    }
  }

  #heartbeatRequest(stats: WorkerStats | undefined): Heartbeat {
    const { held, requested } = this.#host.claims()
    return {
      worker: this.#options.worker,
      claimIds: [...held, ...requested],
      loopLagMs: this.#host.loopLagMs(),
      ...(stats && { stats }),
    }
  }

  /** With one more beat, if something was measured since the last one that had them. */
  async #sendLastStats(): Promise<void> {
    const stats = this.#host.takeStats()
    if (stats) await this.#store.heartbeat(this.#heartbeatRequest(stats))
  }

  #onHeartbeat(answer: HeartbeatResult, sent: readonly ClaimId[], loopLagMs: number): void {
    const now = this.#clock.now()
    const { heartbeatMs } = this.#options
    if (this.#lastHeartbeatAt === 0) this.#connectedSince = now
    else if (now - this.#lastHeartbeatAt > 2 * heartbeatMs) {
      this.#stableSince = now
      this.#connectedSince = now
    }
    if (this.#storeErrorSince !== null) {
      this.#host.emit({ type: 'store_recovered', afterMs: Math.round(now - this.#storeErrorSince) })
      this.#storeErrorSince = null
    }
    if (answer.warning !== undefined && !this.#isWarned) {
      this.#host.emit({ type: 'store_error', message: answer.warning })
    }
    this.#isWarned = answer.warning !== undefined
    const lastJournalSlot = Math.floor(this.#lastHeartbeatAt / JOURNAL_HEARTBEAT_EVERY_MS)
    this.#lastHeartbeatAt = now
    this.#consecutiveHeartbeats++
    this.#serverUpMs =
      answer.serverStartedAt === null ? Infinity : answer.now - answer.serverStartedAt
    if (Math.floor(now / JOURNAL_HEARTBEAT_EVERY_MS) !== lastJournalSlot) {
      this.#host.emit({ type: 'heartbeat', claims: sent.length, loopLagMs })
    }
    const stillHeld = new Set(answer.held)
    this.#host.onHeartbeat({
      lost: sent.filter((id) => !stillHeld.has(id)),
      cancelled: [...answer.cancelled],
      tooOld: answer.isOutdated,
    })
  }

  async #sweep(): Promise<void> {
    const { worker } = this.#options
    // Who cannot be heard itself must not judge others.
    if (
      this.#consecutiveHeartbeats < 2 ||
      !(await this.#store.acquireLeadership(worker, LEADER_MS))
    )
      return
    const verdicts = await sweep(this.#store, {
      observer: this.#observerHealth(),
      actor: `worker ${shortId(worker)}`,
      self: worker,
    })
    for (const verdict of verdicts) this.#host.emit({ type: 'recovery', verdict })
    if (verdicts.some((verdict) => verdict.applied)) this.#host.onRecovered()
    if (this.#clock.now() - this.#settledAt < SETTLE_EVERY_MS) return
    this.#settledAt = this.#clock.now()
    for (const { run, status } of await this.#store.settle()) {
      if (!isLive(status)) this.#host.emit({ type: 'run_end', run, status })
    }
  }

  #settledAt = -Infinity

  async #runMonitor(): Promise<void> {
    const { monitorEveryMs, graceMs } = this.#options
    await this.#clock.sleep(graceMs, this.#stopping.signal)
    if (this.#stopping.signal.aborted) return
    await this.#monitorOnce().catch((error: unknown) => this.#onRecoveryError(error))
    await this.#repeat(
      monitorEveryMs,
      () => this.#monitorOnce(),
      (error) => this.#onRecoveryError(error),
    )
  }

  async #monitorOnce(): Promise<void> {
    const { worker, monitorEveryMs } = this.#options
    const leaderMs = 1.5 * monitorEveryMs
    if (
      this.#consecutiveHeartbeats < 2 ||
      !(await this.#store.acquireLeadership(worker, leaderMs, 'monitor'))
    )
      return
    const verdicts = await this.#monitor.runOnce(this.#observerHealth(), worker)
    if (verdicts.some((verdict) => verdict.applied)) this.#host.onRecovered()
  }

  #observerHealth(): ObserverHealth {
    const now = this.#clock.now()
    return {
      consecutiveHeartbeats: this.#consecutiveHeartbeats,
      stableForMs: Math.min(now - this.#stableSince, this.#serverUpMs),
      connectedForMs: now - this.#connectedSince,
    }
  }

  #lastRecoveryError = ''
  #hasFailed = false
  #isWarned = false

  /** An error in recovery is said, once, and stops nobody's work. */
  #onRecoveryError(error: unknown): void {
    if (error instanceof UnstuckError && error.code === 'E_DB_UNREACHABLE')
      return this.#onStoreError(error)
    if (isUnusable(error)) return this.#onStoreError(error)
    const message = `recovery: ${messageOf(error)}`
    if (message !== this.#lastRecoveryError) this.#host.emit({ type: 'store_error', message })
    this.#lastRecoveryError = message
  }

  /** The store is away: said once, then work goes on trying. Anything else is beyond repair here. */
  #onStoreError(error: unknown): void {
    if (error instanceof UnstuckError && error.code === 'E_DB_UNREACHABLE') {
      if (this.#storeErrorSince !== null) return
      this.#storeErrorSince = this.#clock.now()
      this.#host.emit({ type: 'store_error', message: error.message })
      return
    }
    if (this.#hasFailed) return
    this.#hasFailed = true
    this.#host.emit({ type: 'store_error', message: messageOf(error) })
    this.#host.onFatal(error)
  }
}
