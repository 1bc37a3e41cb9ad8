import { decideNextCycle, NO_RESTARTS, type RestartPolicy, type RestartHistory } from './ending.ts'
import {
  AlreadyRunningError,
  messageOf,
  SourcePausedError,
  StoreUnavailableError,
} from '../../core/model/errors.ts'
import { shortId, type RunId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import { humanizeDuration } from '../../core/model/time.ts'
import { withRetry } from '../../core/store/open.ts'
import type { LiveRun, Store } from '../../core/store/store.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { alreadyRunningError } from '../../core/recovery/source-lock.ts'
import type { CycleOptions } from './cycle.ts'
import type { CycleResult } from './settle-run.ts'
import { CommandStartError, WatchdogLostError } from './watchdog.ts'
import { isOutdated, type CurrentRunner } from './runner.ts'

export type ExecWorkerOptions = {
  readonly store: Store
  readonly runner: CurrentRunner
  readonly cycleOptions: Omit<CycleOptions, 'source' | 'policy' | 'processTag' | 'stop' | 'force'>
  readonly policyFor: (source: string) => Policy
  /** Names of sources; a trailing star matches every name with that prefix. */
  readonly sources: readonly string[]
  readonly concurrency: number
  /** End when the queue is empty, instead of waiting for more. */
  readonly drain: boolean
  readonly restarts: RestartPolicy
  /** Called when the worker is registered and takes runs. */
  readonly onStarted?: () => void
  readonly log: (message: string) => void
}

/** The result of the worker. */
export type ExecSummary = {
  readonly succeeded: number
  readonly failed: number
  /** Stopped with work remaining. */
  readonly isStopped: boolean
}

const POLL_MS = 500
/** The pause after another process took or held a run. */
const RETRY_MS = 2_000

/** Takes queued runs of commands, oldest first, and runs several at once, each in a child process. */
export class ExecWorker {
  readonly #options: ExecWorkerOptions
  readonly #runner: CurrentRunner
  readonly #stopping: AbortSignal
  readonly #active = new Map<string, Promise<void>>()
  /** Tried runs: their restart state, and when to try again. */
  readonly #attempts = new Map<RunId, { trail: RestartHistory; notBefore: number }>()
  #wake = new AbortController()
  #succeeded = 0
  #failed = 0
  #error: unknown = null

  constructor(options: ExecWorkerOptions) {
    this.#options = options
    this.#runner = options.runner
    this.#stopping = options.runner.stopping
  }

  /** The runs whose commands run now. */
  get activeSources(): string[] {
    return [...this.#active.keys()]
  }

  async run(): Promise<ExecSummary> {
    try {
      await this.#runner.get()
      this.#options.onStarted?.()
      while (!this.#stopping.aborted) {
        const live = await this.#claimableRuns()
        for (const { run } of this.#dueRuns(live)) this.#start(run.id, run.source)
        if (this.#options.drain && this.#active.size === 0 && !this.#hasWorkLeft(live)) break
        this.#wake = new AbortController()
        await REAL_CLOCK.sleep(POLL_MS, AbortSignal.any([this.#wake.signal, this.#stopping]))
      }
      await Promise.all(this.#active.values())
      if (this.#error !== null) throw this.#error
      if (!this.#stopping.aborted) await (await this.#runner.get()).assertWorkerExists()
      const isStopped = this.#stopping.aborted && (await this.#claimableRuns()).length > 0
      return { succeeded: this.#succeeded, failed: this.#failed, isStopped }
    } finally {
      this.#runner.requestStop('an error of the worker')
      await Promise.all(this.#active.values())
      await this.#runner.close()
    }
  }

  /** Returns the runs that this worker may take, oldest first. */
  async #claimableRuns(): Promise<LiveRun[]> {
    const { store } = this.#options
    const signal = this.#stopping
    const live = await withRetry(() => store.liveRuns(), signal).catch((error: unknown) =>
      signal.aborted ? [] : rethrow(error),
    )
    // Forgets runs that have ended.
    const alive = new Set(live.map(({ run }) => run.id))
    for (const id of this.#attempts.keys()) if (!alive.has(id)) this.#attempts.delete(id)
    const isClaimable = ({ run, target }: LiveRun): boolean =>
      run.kind === 'single' &&
      run.paused === null &&
      target?.status === 'planned' &&
      this.#matchesSource(run.source)
    return live.filter(isClaimable).reverse()
  }

  #dueRuns(live: readonly LiveRun[]): LiveRun[] {
    const now = REAL_CLOCK.now()
    const isReady = ({ run }: LiveRun): boolean =>
      !this.#active.has(run.source) && (this.#attempts.get(run.id)?.notBefore ?? 0) <= now
    return live.filter(isReady).slice(0, this.#options.concurrency - this.#active.size)
  }

  /** Returns true if there are runs that this worker has not given up on. */
  #hasWorkLeft(live: readonly LiveRun[]): boolean {
    return live.some(({ run }) => this.#attempts.get(run.id)?.notBefore !== Infinity)
  }

  #matchesSource(source: string): boolean {
    return this.#options.sources.some((name) =>
      name.endsWith('*') ? source.startsWith(name.slice(0, -1)) : source === name,
    )
  }

  #start(run: RunId, source: string): void {
    const work = this.#execute(run, source).finally(() => {
      this.#active.delete(source)
      this.#wake.abort()
    })
    this.#active.set(source, work)
  }

  async #execute(run: RunId, source: string): Promise<void> {
    const { cycleOptions, policyFor, log } = this.#options
    try {
      const runner = await this.#runner.get()
      const lock = await runner.lockSource(source, cycleOptions.killTimeoutMs, (state) =>
        Promise.reject(alreadyRunningError(state)),
      )
      let gaveUp: string | undefined
      try {
        const policy = policyFor(source)
        const result = await runner.cycle({
          ...cycleOptions,
          source,
          policy,
          maxDurationMs: cycleOptions.maxDurationMs ?? policy.maxDurationMs,
          processTag: lock.processTag,
          retriesKilled: true,
        })
        gaveUp = this.#recordResult(result)
      } finally {
        // A runner whose watchdog was lost may be closed by now; its lock is then taken over by its evidence.
        await runner
          .unlockSource(source, gaveUp)
          .catch((error: unknown) => runner.failure ?? rethrow(error))
      }
    } catch (error) {
      if (error instanceof AlreadyRunningError || error instanceof SourcePausedError)
        return this.#retryLater(run, RETRY_MS)
      // Every run would fail: the program does not exist.
      if (error instanceof CommandStartError || isOutdated(error)) this.#error = error
      log(`${source}: ${messageOf(error)}`)
      if (error instanceof StoreUnavailableError || error instanceof WatchdogLostError)
        return this.#retryLater(run, RETRY_MS)
      this.#failed++
      if (this.#error !== null) this.#runner.requestStop('a command that cannot be started')
      this.#retryLater(run, Infinity)
    }
  }

  /** Records how a cycle ended. Returns the reason for giving up, if any. */
  #recordResult(result: CycleResult): string | undefined {
    const { run, end, because, isStopped, isLeaseLost } = result
    if (isStopped || isLeaseLost) return undefined
    if (end.outcome === 'succeeded') {
      this.#succeeded++
      this.#attempts.delete(run)
      return undefined
    }
    this.#failed++
    const summary = `run ${shortId(run)} ${end.outcome} (${because})`
    if (!result.canResume) {
      this.#options.log(summary)
      return undefined
    }
    const trail = this.#attempts.get(run)?.trail ?? NO_RESTARTS
    const next = decideNextCycle(this.#options.restarts, end, trail, REAL_CLOCK.now(), null)
    if (next.action === 'start') {
      this.#options.log(`${summary}; it starts again in ${humanizeDuration(next.inMs)}`)
      this.#attempts.set(run, { trail: next.history, notBefore: REAL_CLOCK.now() + next.inMs })
      return undefined
    }
    this.#attempts.set(run, { trail, notBefore: Infinity })
    return next.action === 'give-up' ? `${next.because}; last: ${because}` : undefined
  }

  #retryLater(run: RunId, ms: number): void {
    const trail = this.#attempts.get(run)?.trail ?? NO_RESTARTS
    this.#attempts.set(run, { trail, notBefore: REAL_CLOCK.now() + ms })
  }
}

function rethrow(error: unknown): never {
  throw error
}
