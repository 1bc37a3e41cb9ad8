import { TRUSTED_OBSERVER } from '../decide/liveness.ts'
import { REAL_CLOCK, type Clock } from '../host/clock.ts'
import { thisProcess } from '../host/identity.ts'
import { isUnusable, messageOf, StoreUnavailableError, toUnstuckError } from '../model/errors.ts'
import type { UnstuckEvent } from '../model/event.ts'
import { shortId, type ClaimId, type RunId } from '../model/id.ts'
import type { WorkerStats } from '../model/latency.ts'
import { SWEEP_INTERVAL_MS } from '../model/policy.ts'
import { makePolicyOf } from '../model/policy-of.ts'
import { isLive } from '../model/run.ts'
import type { Presence } from '../model/worker.ts'
import { makeOperatorContext, type OperatorContext } from '../recovery/context.ts'
import { Monitor } from '../recovery/monitor.ts'
import { sweep } from '../recovery/sweep.ts'
import { openStore } from '../store/open.ts'
import type { HeartbeatResult, PresenceLock, Store } from '../store/store.ts'
import { runJob, runJobs, type Job, type JobHost } from './jobs.ts'
import { OwnHealth } from './own-health.ts'
import { sampleJob, youngSampleJob } from './sampling.ts'
import type { FromService, HeartbeatOptions, ToService } from './transport.ts'

export type ServiceHost = {
  /** Returns how long the main thread has been busy without a break. */
  loopLagMs(): number
  post(message: FromService): void
}

const SETTLE_EVERY_MS = 1_000
const JOURNAL_HEARTBEAT_EVERY_MS = 10_000
/** Of several processes that stop together, one takes a last sample. */
const LAST_SAMPLE_WITHIN_MS = 10_000
const LAST_SAMPLE_TIMEOUT_MS = 1_000
/** A run is young for so long after this process claimed the first of it. */
const YOUNG_MS = 2 * 60_000
const IDLE_MS = 10_000

/** Opens the store for a service. Returns null after posting why it could not. */
export async function openHeartbeatService(
  db: string,
  options: HeartbeatOptions,
  host: ServiceHost,
): Promise<HeartbeatService | null> {
  try {
    // For recovery and sampling; the heartbeats have a connection of their own.
    const store = await openStore(db, { writer: options.worker, connections: 1 })
    return new HeartbeatService(store, options, host, REAL_CLOCK)
  } catch (error) {
    host.post({ type: 'fatal', error: toUnstuckError(error).toJSON() })
    return null
  }
}

/**
 * Keeps a worker alive in the eyes of the others: holds its presence lock, sends its heartbeats, and recovers dead workers
 * while it leads. Runs on its own thread or in the watchdog process, so that a long page or a blocked event loop is not
 * mistaken for a crash.
 */
export class HeartbeatService {
  readonly store: Store
  readonly #options: HeartbeatOptions
  readonly #host: ServiceHost
  readonly #clock: Clock
  readonly #jobHost: JobHost
  readonly #stopping = new AbortController()
  readonly #actor: string
  readonly #health: OwnHealth
  readonly #context: OperatorContext
  readonly #monitor: Monitor
  #presence: PresenceLock | null = null
  #jobs: Promise<void> = Promise.resolve()
  #stopped: Promise<void> | null = null
  #claims: { readonly held: readonly ClaimId[]; readonly requested: readonly ClaimId[] } = {
    held: [],
    requested: [],
  }
  /** The run of the last claim. */
  #run: RunId | null = null
  #workedAt = -Infinity
  #youngUntil = -Infinity
  #unsentStats: WorkerStats | undefined
  #journaledSlot = 0
  #settledAt = -Infinity
  #outageSince: number | null = null
  #isWarned = false
  #lastRecoveryError = ''
  #hasFailed = false

  constructor(store: Store, options: HeartbeatOptions, host: ServiceHost, clock: Clock) {
    this.store = store
    this.#options = options
    this.#host = host
    this.#clock = clock
    this.#actor = `worker ${shortId(options.worker)}`
    this.#health = new OwnHealth(options.heartbeatMs)
    const policyOf = makePolicyOf(options.overrides)
    const observer = TRUSTED_OBSERVER
    this.#context = makeOperatorContext({ store, actor: this.#actor, policyOf, observer, clock })
    this.#monitor = new Monitor(this.#context, (event) => this.#emit(event))
    this.#jobHost = {
      clock,
      acquireLeadership: (role, forMs) => store.acquireLeadership(options.worker, forMs, role),
      onError: (job, error) =>
        job.name === 'heartbeat' ? this.#onStoreError(error) : this.#onRecoveryError(error),
    }
  }

  /** Registers the worker and starts the jobs. Returns false after posting why it could not. */
  async start(): Promise<boolean> {
    try {
      const presence = await this.#register()
      // Other workers are declared dead only after two heartbeats of our own.
      await this.#heartbeat()
      await this.#heartbeat()
      await runJob(this.#sweepJob, this.#jobHost)
      this.#jobs = runJobs(this.#jobList, this.#jobHost, this.#stopping.signal)
      this.#host.post({ type: 'started', presence })
      return true
    } catch (error) {
      this.#fatal(error)
      return false
    }
  }

  receive(message: ToService): void {
    switch (message.type) {
      case 'claims':
        this.#noteWork(message.held.length, message.run)
        this.#claims = message
        return
      case 'stats':
        this.#unsentStats = message.stats
        return
      case 'stop':
        void this.stop()
    }
  }

  #noteWork(held: number, run: RunId | null): void {
    const now = this.#clock.now()
    if (run !== this.#run) this.#youngUntil = now + YOUNG_MS
    this.#run = run
    if (held > 0 || this.#claims.held.length > 0) this.#workedAt = now
  }

  /** Returns true also between two targets. */
  get #isAtWork(): boolean {
    return this.#claims.held.length > 0 || this.#clock.now() - this.#workedAt < IDLE_MS
  }

  /** Releases the presence lock. Claims that are still held are left for recovery. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
      .then(() => this.store.close())
      .catch((error: unknown) => this.#fatal(error))
      .then(() => this.#host.post({ type: 'stopped' }))
    return this.#stopped
  }

  get #jobList(): Job[] {
    const { heartbeatMs, monitorEveryMs, startupGraceMs } = this.#options
    return [
      { name: 'heartbeat', every: heartbeatMs, run: () => this.#heartbeat() },
      this.#sweepJob,
      {
        name: 'monitor',
        every: monitorEveryMs,
        after: startupGraceMs,
        leader: { role: 'monitor', forMs: 1.5 * monitorEveryMs },
        isReady: () => this.#health.isTrusted,
        run: () => this.#runMonitor(),
      },
      sampleJob(this.store),
      youngSampleJob(this.store, () => this.#isAtWork && this.#clock.now() < this.#youngUntil),
    ]
  }

  get #sweepJob(): Job {
    return {
      name: 'sweep',
      every: SWEEP_INTERVAL_MS,
      leader: { role: 'sweep', forMs: 2 * SWEEP_INTERVAL_MS },
      isReady: () => this.#health.isTrusted,
      run: () => this.#sweep(),
    }
  }

  async #register(): Promise<Presence> {
    const { worker: id, source, version, heartbeatMs, leaseMs } = this.#options
    this.#presence = await this.store.acquirePresence(id)
    const { presence } = this.#presence
    const worker = { id, source, process: thisProcess(), presence, version, heartbeatMs, leaseMs }
    await this.store.registerWorker(worker)
    return presence
  }

  async #heartbeat(): Promise<void> {
    const { held } = this.#claims
    let result: HeartbeatResult
    try {
      result = await this.#sendHeartbeat()
    } catch (error) {
      this.#health.missed()
      throw error
    }
    const now = this.#clock.now()
    this.#health.accepted(result, now)
    this.#reportRecovery(result, now)
    const slot = Math.floor(now / JOURNAL_HEARTBEAT_EVERY_MS)
    if (slot !== this.#journaledSlot) {
      this.#emit({ type: 'heartbeat', claims: held.length, loopLagMs: this.#host.loopLagMs() })
      this.#journaledSlot = slot
    }
    const stillHeld = new Set(result.held)
    this.#host.post({
      type: 'heartbeat',
      lost: held.filter((id) => !stillHeld.has(id)),
      cancelled: [...result.cancelled],
      paused: result.paused,
      isOutdated: result.isOutdated,
    })
    await this.#unpark(result.unpark)
  }

  #sendHeartbeat(): Promise<HeartbeatResult> {
    const { held, requested } = this.#claims
    const stats = this.#unsentStats
    this.#unsentStats = undefined
    return this.store.heartbeat({
      worker: this.#options.worker,
      claimIds: [...held, ...requested],
      loopLagMs: this.#host.loopLagMs(),
      ...(stats && { stats }),
    })
  }

  /** Unparks targets that were parked because this worker seemed to have crashed. */
  async #unpark(parked: HeartbeatResult['unpark']): Promise<void> {
    for (const { run, target } of parked) {
      await this.store
        .replan({
          run,
          targets: [target],
          action: 'unpark',
          statuses: ['parked'],
          actor: this.#actor,
          because: 'it was parked for a crash that was none: its worker sends heartbeats again',
          reopen: false,
          dryRun: false,
        })
        .catch((error: unknown) => this.#onRecoveryError(error))
    }
  }

  async #sweep(): Promise<void> {
    const verdicts = await sweep(this.store, {
      ...this.#context,
      observer: this.#health.at(this.#clock.now()),
      self: this.#options.worker,
    })
    for (const verdict of verdicts) this.#emit({ type: 'recovery', verdict })
    if (verdicts.some(({ applied }) => applied)) this.#host.post({ type: 'recovered' })
    if (this.#clock.now() - this.#settledAt < SETTLE_EVERY_MS) return
    this.#settledAt = this.#clock.now()
    for (const { run, status } of await this.store.settle()) {
      if (!isLive(status)) this.#emit({ type: 'run_end', run, status })
    }
  }

  async #runMonitor(): Promise<void> {
    const observer = this.#health.at(this.#clock.now())
    const verdicts = await this.#monitor.runOnce(observer, this.#options.worker)
    if (verdicts.some(({ applied }) => applied)) this.#host.post({ type: 'recovered' })
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    await this.#jobs
    if (this.#unsentStats) await this.#sendHeartbeat().catch(() => {})
    // Others then need no proof that this worker has ended. If the store is unreachable, the released lock is the proof.
    const onError = (error: unknown): void => this.#onStoreError(error)
    await this.store.retireWorker(this.#options.worker).catch(onError)
    const settled = await this.store.settle().catch(onError)
    await this.#presence?.release()
    if (settled) await this.#takeLastSample()
  }

  /** Samples the last minute of runs that ended with this process; no other process may be left to do so. Waits a second at most. */
  async #takeLastSample(): Promise<void> {
    const taken = new AbortController()
    await Promise.race([
      this.store.takeSample({ unlessWithinMs: LAST_SAMPLE_WITHIN_MS }).catch(() => {}),
      this.#clock.sleep(LAST_SAMPLE_TIMEOUT_MS, taken.signal),
    ])
    taken.abort()
  }

  /** Emits the end of an outage, and what the store warns of, once. */
  #reportRecovery({ warning }: HeartbeatResult, now: number): void {
    if (this.#outageSince !== null) {
      this.#emit({ type: 'store_recovered', afterMs: Math.round(now - this.#outageSince) })
      this.#outageSince = null
    }
    if (warning !== undefined && !this.#isWarned)
      this.#emit({ type: 'store_error', message: warning })
    this.#isWarned = warning !== undefined
  }

  /** Emits an outage once and goes on. Any other error of the store ends the service. */
  #onStoreError(error: unknown): void {
    if (error instanceof StoreUnavailableError) {
      if (this.#outageSince !== null) return
      this.#outageSince = this.#clock.now()
      return this.#emit({ type: 'store_error', message: error.message })
    }
    if (this.#hasFailed) return
    this.#hasFailed = true
    this.#emit({ type: 'store_error', message: messageOf(error) })
    this.#fatal(error)
  }

  /** Emits an error in recovery once and goes on: the work does not depend on it. */
  #onRecoveryError(error: unknown): void {
    if (error instanceof StoreUnavailableError || isUnusable(error))
      return this.#onStoreError(error)
    const message = `recovery: ${messageOf(error)}`
    if (message !== this.#lastRecoveryError) this.#emit({ type: 'store_error', message })
    this.#lastRecoveryError = message
  }

  #emit(event: UnstuckEvent): void {
    this.#host.post({ type: 'event', event })
  }

  #fatal(error: unknown): void {
    this.#host.post({ type: 'fatal', error: toUnstuckError(error).toJSON() })
  }
}
