import { decideNextCycle, NO_RESTARTS, type RestartPolicy, type RestartHistory } from './ending.ts'
import {
  AlreadyRunningError,
  messageOf,
  SourcePausedError,
  StoreUnavailableError,
} from '../../core/model/errors.ts'
import { findPause } from '../../presenters/sources.ts'
import { StartWait } from './start-wait.ts'
import { EXIT } from '../../core/model/exit-codes.ts'
import type { SourceLock } from '../../core/model/source-lock.ts'
import { humanizeDuration, iso } from '../../core/model/time.ts'
import type { Store } from '../../core/store/store.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import {
  alreadyRunningError,
  describeHolder,
  inspectSourceLock,
  type SourceLockState,
} from '../../core/recovery/source-lock.ts'
import type { CycleOptions } from './cycle.ts'
import type { CycleResult } from './settle-run.ts'
import { WatchdogLostError } from './watchdog.ts'
import type { CommandRunner, CurrentRunner } from './runner.ts'
import type { Tracking } from './start-tagged.ts'

export type SupervisorOptions = {
  /** For reads before there is a runner. */
  readonly store: Store
  readonly runner: CurrentRunner
  readonly cycleOptions: Omit<CycleOptions, 'processTag' | 'stop' | 'force'>
  readonly restarts: RestartPolicy
  /** Milliseconds until the next time of the schedule; null: no schedule. */
  readonly msUntilNextTick: () => number | null
  readonly ifRunning: 'wait' | 'skip' | 'fail'
  readonly log: (message: string) => void
}

/** The result of `run`. */
export type SupervisorResult = {
  readonly exitCode: number
  readonly last: CycleResult | null
  readonly gaveUp: string | null
  /** Another process runs it, which `skip` accepts. */
  readonly skipped: string | null
  /** How the processes of the command were found; null if none was started. */
  readonly tracking: Tracking | null
}

const BUSY_RETRY_MS = 500
const BUSY_LOG_MS = 60_000

const NOTHING_RUN: SupervisorResult = {
  exitCode: EXIT.resumable,
  last: null,
  gaveUp: null,
  skipped: null,
  tracking: null,
}

/** Runs a source's command cycle by cycle, one copy at a time, and keeps the source locked meanwhile. */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #runner: CurrentRunner
  readonly #stopping: AbortSignal
  #lastRunner: CommandRunner | null = null
  #hasSourceLock = false
  #trail: RestartHistory = NO_RESTARTS
  readonly #startWait: StartWait
  #busyLoggedAt = -Infinity

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#runner = options.runner
    this.#stopping = options.runner.stopping
    const { store, cycleOptions, msUntilNextTick, log } = options
    this.#startWait = new StartWait({
      store,
      source: cycleOptions.source,
      stopping: this.#stopping,
      isLost: () => this.#lastRunner?.isOutdated === true,
      msUntilNextTick,
      log,
    })
  }

  async run(): Promise<SupervisorResult> {
    let gaveUp: string | undefined
    try {
      await this.#failIfRefused()
      const ended = await this.#runCycles()
      gaveUp = ended.gaveUp ?? undefined
      return ended
    } catch (error) {
      const isRefused = error instanceof AlreadyRunningError || error instanceof SourcePausedError
      if (isRefused && this.#options.ifRunning === 'skip')
        return { ...NOTHING_RUN, exitCode: EXIT.done, skipped: error.message }
      throw error
    } finally {
      await this.#unlockSource(gaveUp)
    }
  }

  async #runCycles(): Promise<SupervisorResult> {
    const { restarts, msUntilNextTick } = this.#options
    const tick = msUntilNextTick()
    if (tick !== null && !(await this.#waitForTick(tick))) return NOTHING_RUN
    // Stopped while waiting for another copy: all work remains. While waiting for the schedule: none. Between two cycles:
    // what the last one left.
    let stopped = tick === null ? NOTHING_RUN : { ...NOTHING_RUN, exitCode: EXIT.done }
    while (!this.#stopping.aborted) {
      const last = await this.#withRetry(() => this.#runCycle())
      if (last === null) break
      const done = (exitCode: number, gaveUp: string | null = null): SupervisorResult => ({
        exitCode,
        last,
        gaveUp,
        skipped: null,
        tracking: this.#lastRunner?.tracking ?? null,
      })
      if (this.#lastRunner?.isOutdated) throw this.#lastRunner.failure!
      if (last.isLeaseLost) {
        if (this.#lastRunner) await this.#lastRunner.assertWorkerExists()
        return done(EXIT.leaseLost)
      }
      if (last.isStopped) return done(last.exitCode)
      const next = decideNextCycle(
        restarts,
        last.end,
        this.#trail,
        REAL_CLOCK.now(),
        msUntilNextTick(),
      )
      if (next.action === 'end') return done(last.exitCode)
      if (next.action === 'give-up') {
        return done(last.exitCode || EXIT.failed, `${next.because}; last: ${last.because}`)
      }
      this.#trail = next.history
      const outcome = `${last.end.outcome} (${last.because})`
      this.#log(`${outcome}; starts again in ${humanizeDuration(next.inMs)} (${next.because})`)
      stopped = done(last.canResume ? EXIT.resumable : EXIT.done)
      await this.#startWait.forMs(next.inMs)
    }
    return stopped
  }

  /** Retries while waiting can help. Returns null if stopped meanwhile. */
  async #withRetry<T>(act: () => Promise<T>): Promise<T | null> {
    const signal = this.#stopping
    while (!signal.aborted) {
      try {
        return await act()
      } catch (error) {
        if (signal.aborted && error === signal.reason) return null
        // A new watchdog may succeed.
        const isWatchdogFailure = error !== null && error === this.#lastRunner?.failure
        if (isWatchdogFailure && !this.#lastRunner?.isOutdated) continue
        if (!this.#isRetryable(error)) throw error
        if (error instanceof SourcePausedError) await this.#startWait.whilePaused()
        else await this.#wait(messageOf(error))
      }
    }
    return null
  }

  async #runCycle(): Promise<CycleResult> {
    const { runner, lock } = await this.#lockSource()
    return runner.cycle({ ...this.#options.cycleOptions, processTag: lock.processTag })
  }

  async #lockSource(): Promise<{ runner: CommandRunner; lock: SourceLock }> {
    const { source, killTimeoutMs } = this.#options.cycleOptions
    const runner = await this.#runner.get()
    this.#lastRunner = runner
    const lock = await runner.lockSource(source, killTimeoutMs, (state) => this.#onLocked(state))
    this.#hasSourceLock = true
    return { runner, lock }
  }

  /** Waits for another copy and for the end of a pause, if configured; for a database that was reachable before; for a watchdog that may yet start. */
  #isRetryable(error: unknown): boolean {
    if (error instanceof AlreadyRunningError) return this.#options.ifRunning === 'wait'
    if (error instanceof SourcePausedError) return this.#waitsForPause
    if (error instanceof WatchdogLostError) return this.#options.restarts.restart !== 'never'
    return error instanceof StoreUnavailableError && this.#lastRunner !== null
  }

  /** What runs again and again outlasts a pause; a single run is refused, as by another copy. */
  get #waitsForPause(): boolean {
    const { restarts, msUntilNextTick, ifRunning } = this.#options
    return ifRunning === 'wait' || restarts.intervalMs !== null || msUntilNextTick() !== null
  }

  /** Refuses a running or paused source at once, before the watchdog is started. */
  async #failIfRefused(): Promise<void> {
    const { store, cycleOptions, ifRunning } = this.#options
    const { source } = cycleOptions
    const paused = this.#waitsForPause ? null : await findPause(store, source)
    if (paused) throw new SourcePausedError(source, paused)
    if (ifRunning === 'wait') return
    const lock = (await store.sourceLocks(source))[0]
    const state = lock && (await inspectSourceLock(store, lock))
    if (state?.advice.action === 'refuse') throw alreadyRunningError(state)
  }

  /** Another process has the source. A lock about to be released is always waited for. */
  async #onLocked(state: SourceLockState): Promise<void> {
    const isUnlocking = state.lock.unlockingSince !== null
    const willUnlock = state.advice.action === 'wait'
    if (this.#options.ifRunning !== 'wait' && !isUnlocking && !willUnlock)
      throw alreadyRunningError(state)
    await this.#wait(describeHolder(state, await this.#options.store.now()))
    this.#stopping.throwIfAborted()
  }

  async #wait(because: string): Promise<void> {
    const now = REAL_CLOCK.now()
    if (now - this.#busyLoggedAt > BUSY_LOG_MS) {
      this.#busyLoggedAt = now
      this.#log(`waiting: ${because}`)
    }
    await REAL_CLOCK.sleep(BUSY_RETRY_MS, this.#stopping)
  }

  /** Waits for the first time of a schedule with the source locked. Returns false if stopped meanwhile. */
  async #waitForTick(ms: number): Promise<boolean> {
    const at = Date.now() + ms
    const locked = await this.#withRetry(() => this.#lockSource())
    if (locked === null) return false
    const leftMs = Math.max(0, at - Date.now())
    // Times of a schedule are whole seconds.
    const time = iso(Math.round(at / 1_000) * 1_000)
      .slice(0, 19)
      .replace('T', ' ')
    this.#log(`first run in ${humanizeDuration(leftMs)}, at ${time} UTC`)
    await this.#startWait.forMs(leftMs)
    return true
  }

  async #unlockSource(gaveUp: string | undefined): Promise<void> {
    const { cycleOptions, log } = this.#options
    // Without the database, the released presence has the same effect.
    if (this.#hasSourceLock)
      await this.#lastRunner
        ?.unlockSource(cycleOptions.source, gaveUp)
        .catch((error) => log(messageOf(error)))
    await this.#runner.close()
  }

  #log(message: string): void {
    this.#options.log(message)
  }
}
