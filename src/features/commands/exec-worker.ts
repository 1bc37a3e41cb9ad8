import { decideNextCycle, NO_TRAIL, type Restarts, type Trail } from './next-cycle.ts'
import {
  AlreadyRunning,
  EXIT,
  isUnusable,
  messageOf,
  StoreUnavailable,
  UnstuckError,
} from '../../core/model/errors.ts'
import { shortId, type RunId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import { inWords } from '../../core/model/time.ts'
import { whenAvailable } from '../../core/store/open.ts'
import type { LiveRun, Store } from '../../core/store/store.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { alreadyRunning } from '../../core/recovery/source-lock.ts'
import { CurrentRunner } from './current-runner.ts'
import type { CycleOptions } from './cycle.ts'
import type { CycleResult } from './settle-run.ts'
import { CommandRefused, GuardianLost } from './watchdog.ts'
import type { RunnerOptions } from './runner.ts'

export type ExecOptions = {
  readonly store: Store
  readonly runner: () => Promise<RunnerOptions>
  readonly cycle: Omit<CycleOptions, 'source' | 'policy' | 'cookie' | 'stop' | 'hurry'>
  readonly policyFor: (source: string) => Policy
  /** Names of sources; one that ends with a star stands for all that begin so. */
  readonly sources: readonly string[]
  readonly concurrency: number
  /** End when nothing is left, instead of waiting for more. */
  readonly drain: boolean
  readonly restarts: Restarts
  /** It is registered, and takes runs from now on. */
  readonly onStarted?: () => void
  readonly log: (message: string) => void
}

/** What was done, for whoever started it. */
export type ExecSummary = {
  readonly succeeded: number
  readonly failed: number
  /** Stopped with work left. */
  readonly isStopped: boolean
}

const LOOK_EVERY_MS = 500
/** Somebody else was faster, or has it for a while. */
const TRY_AGAIN_MS = 2_000

/** Takes queued runs of commands, oldest first, each in a child process, some at once. Each is a run like any other. */
export class ExecWorker {
  readonly #options: ExecOptions
  readonly #runner: CurrentRunner
  readonly #stopping = new AbortController()
  readonly #hurry = new AbortController()
  readonly #atWork = new Map<string, Promise<void>>()
  /** Runs that were tried: what is remembered of them, and when they may be tried again. */
  readonly #tried = new Map<RunId, { trail: Trail; notBefore: number }>()
  #wake = new AbortController()
  #succeeded = 0
  #failed = 0
  #error: unknown = null

  constructor(options: ExecOptions) {
    this.#options = options
    this.#runner = new CurrentRunner(options.runner, options.log)
  }

  get isHeard(): boolean {
    return this.#runner.isHeard
  }

  /** Whose commands run now. */
  get sourcesAtWork(): string[] {
    return [...this.#atWork.keys()]
  }

  stop(by: string): void {
    this.#stopping.abort(by)
    this.#wake.abort()
  }

  hurry(): void {
    this.#hurry.abort()
  }

  async run(): Promise<ExecSummary> {
    try {
      await this.#runner.get()
      this.#options.onStarted?.()
      while (!this.#stopping.signal.aborted) {
        const live = await this.#mine()
        for (const { run } of this.#ready(live)) this.#start(run.id, run.source)
        if (this.#options.drain && this.#atWork.size === 0 && !this.#isAnythingLeft(live)) break
        this.#wake = new AbortController()
        await REAL_CLOCK.sleep(
          LOOK_EVERY_MS,
          AbortSignal.any([this.#wake.signal, this.#stopping.signal]),
        )
      }
      await Promise.all(this.#atWork.values())
      if (this.#error !== null) throw this.#error
      if (!this.#stopping.signal.aborted) await (await this.#runner.get()).assertKnown()
      const isStopped = this.#stopping.signal.aborted && (await this.#mine()).length > 0
      return { succeeded: this.#succeeded, failed: this.#failed, isStopped }
    } finally {
      this.#stopping.abort()
      await Promise.all(this.#atWork.values())
      await this.#runner.stop()
    }
  }

  /** Live runs of commands that are ours to take, oldest first. */
  async #mine(): Promise<LiveRun[]> {
    const { store } = this.#options
    const { signal } = this.#stopping
    const live = await whenAvailable(() => store.liveRuns(), signal).catch((error: unknown) =>
      signal.aborted ? [] : raise(error),
    )
    // What has ended is no longer ours to remember.
    const alive = new Set(live.map(({ run }) => run.id))
    for (const id of this.#tried.keys()) if (!alive.has(id)) this.#tried.delete(id)
    const isOurs = ({ run, target }: LiveRun): boolean =>
      run.kind === 'single' && target?.status === 'planned' && this.#isMeant(run.source)
    return live.filter(isOurs).reverse()
  }

  #ready(live: readonly LiveRun[]): LiveRun[] {
    const now = REAL_CLOCK.now()
    const isReady = ({ run }: LiveRun): boolean =>
      !this.#atWork.has(run.source) && (this.#tried.get(run.id)?.notBefore ?? 0) <= now
    return live.filter(isReady).slice(0, this.#options.concurrency - this.#atWork.size)
  }

  /** Who gave up on a run leaves it for a person. */
  #isAnythingLeft(live: readonly LiveRun[]): boolean {
    return live.some(({ run }) => this.#tried.get(run.id)?.notBefore !== Infinity)
  }

  #isMeant(source: string): boolean {
    return this.#options.sources.some((name) =>
      name.endsWith('*') ? source.startsWith(name.slice(0, -1)) : source === name,
    )
  }

  #start(run: RunId, source: string): void {
    const work = this.#work(run, source).finally(() => {
      this.#atWork.delete(source)
      this.#wake.abort()
    })
    this.#atWork.set(source, work)
  }

  async #work(run: RunId, source: string): Promise<void> {
    const { cycle, policyFor, log } = this.#options
    try {
      const runner = await this.#runner.get()
      const guard = await runner.hold(source, cycle.killTimeoutMs, (seen) =>
        Promise.reject(alreadyRunning(seen)),
      )
      let gaveUp: string | undefined
      try {
        const policy = policyFor(source)
        const result = await runner.cycle({
          ...cycle,
          source,
          policy,
          maxDurationMs: cycle.maxDurationMs ?? policy.maxDurationMs,
          cookie: guard.cookie,
          stop: this.#stopping.signal,
          hurry: this.#hurry.signal,
        })
        gaveUp = this.#remember(result)
      } finally {
        // One whose guardian was lost may be closed by now: what it held is then taken over by its evidence.
        await runner.free(source, gaveUp).catch((error: unknown) => runner.failure ?? raise(error))
      }
    } catch (error) {
      if (error instanceof AlreadyRunning) return this.#later(run, TRY_AGAIN_MS)
      // No other run would fare better: the program is not there.
      if (error instanceof CommandRefused || isOutdated(error)) this.#error = error
      log(`${source}: ${messageOf(error)}`)
      if (error instanceof StoreUnavailable || error instanceof GuardianLost)
        return this.#later(run, TRY_AGAIN_MS)
      this.#failed++
      if (this.#error !== null) this.stop('the command cannot be started')
      this.#later(run, Infinity)
    }
  }

  /** Answers why it gives up, if it does. */
  #remember(result: CycleResult): string | undefined {
    const { run, end, because, isStopped, isLost } = result
    if (isStopped || isLost) return undefined
    if (end.outcome === 'succeeded') {
      this.#succeeded++
      this.#tried.delete(run)
      return undefined
    }
    this.#failed++
    const said = `run ${shortId(run)} ${end.outcome} (${because})`
    if (!result.isLeft) {
      this.#options.log(said)
      return undefined
    }
    const trail = this.#tried.get(run)?.trail ?? NO_TRAIL
    const next = decideNextCycle(this.#options.restarts, end, trail, REAL_CLOCK.now(), null)
    if (next.action === 'start') {
      this.#options.log(`${said}; it is taken up again in ${inWords(next.inMs)}`)
      this.#tried.set(run, { trail: next.trail, notBefore: REAL_CLOCK.now() + next.inMs })
      return undefined
    }
    this.#tried.set(run, { trail, notBefore: Infinity })
    return next.action === 'give-up' ? `${next.because}; last: ${because}` : undefined
  }

  #later(run: RunId, ms: number): void {
    const trail = this.#tried.get(run)?.trail ?? NO_TRAIL
    this.#tried.set(run, { trail, notBefore: REAL_CLOCK.now() + ms })
  }
}

/** Every other run would fail for it as well. */
function isOutdated(error: unknown): boolean {
  return isUnusable(error) || (error instanceof UnstuckError && error.exitCode === EXIT.schema)
}

function raise(error: unknown): never {
  throw error
}
