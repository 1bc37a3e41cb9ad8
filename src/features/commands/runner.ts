import { randomBytes } from 'node:crypto'
import { isUnusable, UnstuckError } from '../../core/model/errors.ts'
import type { Emit } from '../../core/model/event.ts'
import type { SourceLock } from '../../core/model/source-lock.ts'
import type { ClaimId, WorkerId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import type { PolicyOverrides } from '../../core/model/policy-of.ts'
import type { Store } from '../../core/store/store.ts'
import { COMMAND_PROCESSES } from '../../lib/process/end-tree.ts'
import { acquireSourceLock, type SourceLockState } from '../../core/recovery/source-lock.ts'
import { assertWorkerExists } from '../../core/worker/assert-worker.ts'
import { heartbeatOptions } from '../../core/heartbeat/transport.ts'
import { runCycle, type CycleOptions } from './cycle.ts'
import type { RunApi } from './run-api/run-api.ts'
import type { CycleResult } from './settle-run.ts'
import { Watchdog } from './watchdog.ts'
import { OutputPruner } from './output-pruner.ts'
import { trackingGap, type Tracking } from './start-tagged.ts'

export type RunnerOptions = {
  readonly store: Store
  readonly db: string
  /** The worker's id, under which the store was opened. */
  readonly worker: WorkerId
  /** Empty for a worker with many sources. */
  readonly source: string
  readonly policy: Policy
  /** The config's policies: the runs of others are assessed by them. */
  readonly overrides: PolicyOverrides
  readonly endpoint: Pick<RunApi, 'open'>
  /** The number of ended runs per source that keep their output; null: all. */
  readonly keepOutput: number | null
  readonly actor: string
  readonly emit: Emit
  readonly log: (message: string) => void
}

/** Receives what happens to a claim. */
export type ClaimListener = {
  onLost(): void
  onCancelled(): void
  /** The watchdog died. */
  onWatchdogLost(): void
  /** This program can no longer use the database; the command is to stop. */
  onOutdated(because: string): void
}

/** Runs commands under a watchdog. One process has one watchdog, and any number of commands at once. */
export class CommandRunner {
  readonly options: RunnerOptions
  readonly watchdog: Watchdog
  readonly claims = new Map<ClaimId, ClaimListener>()
  readonly #signals: Pick<CycleOptions, 'stop' | 'force'>
  readonly #outputPruner: OutputPruner | null
  #failure: UnstuckError | null = null
  #isClosed = false
  #tracking: Tracking | null = null

  constructor(options: RunnerOptions, signals: Pick<CycleOptions, 'stop' | 'force'>) {
    this.options = options
    this.#signals = signals
    const { db, worker, source, policy, overrides, emit, store, keepOutput: keep, log } = options
    this.#outputPruner = keep === null ? null : new OutputPruner({ store, keep, log })
    const heartbeat = heartbeatOptions(worker, source, policy, overrides)
    this.watchdog = new Watchdog(db, heartbeat, {
      emit,
      onLost: (claims) => claims.forEach((id) => this.claims.get(id)?.onLost()),
      onCancelled: (claims) => claims.forEach((id) => this.claims.get(id)?.onCancelled()),
      onFatal: (error) => {
        this.#failure = error
        for (const listener of this.claims.values()) {
          if (this.isOutdated) listener.onOutdated(error.message)
          else listener.onWatchdogLost()
        }
      },
    })
  }

  /** Why it can run no more commands; null while it can. */
  get failure(): UnstuckError | null {
    return this.#failure
  }

  /** True if a new runner would fail for the same reason. */
  get isOutdated(): boolean {
    return isOutdated(this.#failure)
  }

  /** How the processes of its commands are found; null before the first one started. */
  get tracking(): Tracking | null {
    return this.#tracking
  }

  /** Logs once which processes cannot be found. */
  setTracking(tracking: Tracking): void {
    const gap = this.#tracking === null ? trackingGap(tracking) : null
    this.#tracking = tracking
    if (gap !== null) this.options.log(`${gap} (see \`unstuck doctor\`)`)
  }

  /** Resolves when the watchdog's heartbeats are accepted and dead work has been recovered. */
  async start(): Promise<void> {
    await this.watchdog.heartbeat.started()
  }

  /**
   * Locks the source. Afterwards no other process may start it, and no process of an earlier copy runs on this machine.
   * Throws `failure` if the watchdog is lost meanwhile, because nothing would hold the lock.
   */
  async lockSource(
    source: string,
    killTimeoutMs: number,
    onLocked: (state: SourceLockState) => Promise<void>,
  ): Promise<SourceLock> {
    const { store, worker, log } = this.options
    const processTag = randomBytes(8).toString('hex')
    const lock = await acquireSourceLock(
      store,
      { source, worker, killTimeoutMs, processTag },
      {
        processes: COMMAND_PROCESSES,
        log,
        spare: this.watchdog.pid,
        onBusy: async (state) => {
          if (this.#failure) throw this.#failure
          await onLocked(state)
        },
      },
    )
    if (this.#failure) throw this.#failure
    return lock
  }

  async cycle(options: Omit<CycleOptions, 'stop' | 'force'>): Promise<CycleResult> {
    const result = await runCycle(this, { ...options, ...this.#signals })
    const { base, source } = options
    const { stop } = this.#signals
    // Not while stopping, and not without the source lock.
    const canPrune = !stop.aborted && !result.isLeaseLost && !this.#failure
    if (canPrune) await this.#outputPruner?.prune(base, source, stop)
    return result
  }

  /** Throws if the worker's row is gone from the database. */
  assertWorkerExists(): Promise<void> {
    return assertWorkerExists(this.options.store, this.options.worker)
  }

  async unlockSource(source: string, gaveUp?: string): Promise<void> {
    // The locks of a closed runner are taken over by their evidence.
    if (this.#isClosed) return
    const { store, worker } = this.options
    await store.unlockSource({ source, worker, ...(gaveUp !== undefined && { gaveUp }) })
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.watchdog.stop()
    await this.options.store.close()
  }
}

/**
 * The current runner, and the requests to stop it. If its watchdog is lost, a new runner with a new identity replaces it.
 */
export class CurrentRunner {
  readonly #makeOptions: () => Promise<RunnerOptions>
  readonly #log: (message: string) => void
  readonly #stopping = new AbortController()
  readonly #force = new AbortController()
  #current: Promise<CommandRunner> | null = null
  #latest: CommandRunner | null = null

  constructor(makeOptions: () => Promise<RunnerOptions>, log: (message: string) => void) {
    this.#makeOptions = makeOptions
    this.#log = log
  }

  /** Fires when the commands are to be ended, with the reason. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** Ends the commands; no further ones are started. */
  requestStop(reason: string): void {
    this.#stopping.abort(reason)
  }

  /** Kills the commands at once. */
  forceStop(): void {
    this.#force.abort()
  }

  /** True while heartbeats are accepted, and before the first runner, when nothing is held. */
  get isHeartbeating(): boolean {
    return this.#latest?.watchdog.heartbeat.canClaim() ?? true
  }

  /** Returns a working runner, the same for concurrent calls. Throws a failure that a new runner would share. */
  async get(): Promise<CommandRunner> {
    const pending = (this.#current ??= this.#startRunner(null))
    try {
      const runner = await pending
      if (!runner.failure) return runner
      if (runner.isOutdated) throw runner.failure
      if (this.#current === pending) this.#current = this.#startRunner(runner)
    } catch (error) {
      // The next call tries again.
      if (this.#current === pending) this.#current = null
      throw error
    }
    return this.get()
  }

  /** Releases the presence, after the source locks were released. */
  async close(): Promise<void> {
    const runner = await this.#current?.catch(() => null)
    this.#current = null
    await runner?.close()
  }

  async #startRunner(lost: CommandRunner | null): Promise<CommandRunner> {
    if (lost) {
      this.#log(`${lost.failure?.message} A new watchdog takes its place.`)
      await lost.close()
    }
    const signals = { stop: this.#stopping.signal, force: this.#force.signal }
    const runner = new CommandRunner(await this.#makeOptions(), signals)
    try {
      await runner.start()
    } catch (error) {
      await runner.close()
      throw error
    }
    this.#latest = runner
    return runner
  }
}

/** Returns true for an error that every run and every new runner would hit too. */
export function isOutdated(error: unknown): boolean {
  return isUnusable(error) || UnstuckError.is(error, 'E_SCHEMA_NEWER')
}
