import { REAL_CLOCK } from '../../core/host/clock.ts'
import { messageOf, UsageError } from '../../core/model/errors.ts'
import { EXIT } from '../../core/model/exit-codes.ts'
import { runName } from '../../core/model/traits.ts'
import type { Run } from '../../core/model/run.ts'
import { humanizeDuration } from '../../core/model/time.ts'
import { withRetry } from '../../core/store/open.ts'
import type { Ended } from '../../contracts/workers.ts'
import { findPause } from '../../presenters/sources.ts'
import { decideCopyRestart, NO_EXITS, type CopyHistory } from './copy-restart.ts'
import { CommandStartError } from './watchdog.ts'
import { isOutdated } from './runner.ts'
import { WorkerCopy, type CopyExit, type CopyOptions } from './worker-copy.ts'

export type WorkerPoolOptions = Omit<CopyOptions, 'stop' | 'force' | 'onClaimable'> & {
  readonly count: number
  /** End when no work is left, instead of waiting for the next run. */
  readonly drain: boolean
}

const POLL_MS = 500

/** Runs copies of a command that work on the targets of a source, and starts those that die again while work is left. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #copies = new Set<WorkerCopy>()
  readonly #stopping = new AbortController()
  readonly #force = new AbortController()
  #stopped: string | null = null
  #error: unknown = null
  #code: number = EXIT.done

  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  /** True while the heartbeats of a copy are accepted, and while none runs. */
  get isHealthy(): boolean {
    return this.#copies.size === 0 || [...this.#copies].some((copy) => copy.isHeartbeating)
  }

  /** Asks every copy to finish its pages and end. */
  stop(because: string): void {
    if (this.#stopping.signal.aborted) return
    this.#stopped = because
    this.#stopping.abort(because)
  }

  /** Kills every copy at once. */
  kill(): void {
    this.#force.abort()
  }

  /** Resolves when every copy has ended and none will be started again. */
  async run(): Promise<Ended> {
    const slots = Array.from({ length: this.#options.count }, (_, n) => this.#fillSlot(n + 1))
    await Promise.all(slots)
    if (this.#error !== null) throw this.#error
    return { code: this.#code, stopped: this.#stopped }
  }

  /** Runs one copy after the other while there is work. */
  async #fillSlot(n: number): Promise<void> {
    const { signal } = this.#stopping
    let history: CopyHistory = NO_EXITS
    try {
      for (let run; !signal.aborted && (run = await this.#nextRun());) {
        const exit = await this.#runCopy(run)
        if (signal.aborted) return
        const next = decideCopyRestart(exit, history)
        if (next.action === 'give-up') return this.#giveUp(next.because)
        history = next.history
        if (exit.outcome.run === 'succeed' && next.inMs === 0) continue
        const when = next.inMs > 0 ? ` in ${humanizeDuration(next.inMs)}` : ''
        this.#options.log(`worker ${n}: ${exit.outcome.because}; starting it again${when}`)
        await REAL_CLOCK.sleep(next.inMs, signal)
      }
    } catch (error) {
      if (signal.aborted) return
      this.#error ??= error
      this.stop(messageOf(error).replace(/\.$/, ''))
    }
  }

  #giveUp(because: string): void {
    this.#options.log(because)
    this.#code = EXIT.failed
    this.stop(because)
  }

  async #runCopy(run: Run): ReturnType<WorkerCopy['run']> {
    const copy = new WorkerCopy(run, {
      ...this.#options,
      stop: this.#stopping.signal,
      force: this.#force.signal,
      onClaimable: () => {
        for (const one of this.#copies) one.wakeUp()
      },
    })
    this.#copies.add(copy)
    try {
      const exit = await copy.run()
      if (exit.failure) throw exit.failure
      return exit
    } catch (error) {
      if (isFinal(error) || this.#stopping.signal.aborted) throw error
      // Another copy may succeed: the database was unreachable, or the watchdog could not start.
      return notStarted(messageOf(error).replace(/\.$/, ''))
    } finally {
      this.#copies.delete(copy)
    }
  }

  /** Returns the live run of the source; waits for one, or returns null if there is none and none is waited for. */
  async #nextRun(): Promise<Run | null> {
    const { store, source, drain, onReady } = this.#options
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const run = await withRetry(() => store.liveRun(source), signal)
      if (run && run.kind !== 'crawl') throw notACrawl(run)
      const paused = run && (await withRetry(() => findPause(store, source), signal))
      if (signal.aborted) return null
      if (run && !paused) return run
      if (drain) return null
      onReady()
      await REAL_CLOCK.sleep(POLL_MS * (0.5 + REAL_CLOCK.random()), signal)
    }
    return null
  }
}

function notACrawl(run: Run): UsageError {
  return new UsageError(
    `Run ${runName(run)} of ${run.source} has no targets: it belongs to \`unstuck run\` or \`work --exec\`. ` +
      'End it first, or take another name for the source.',
  )
}

/** Returns true for an error that every copy would hit too. */
function isFinal(error: unknown): boolean {
  return error instanceof CommandStartError || isOutdated(error)
}

function notStarted(because: string): CopyExit {
  const outcome = { run: 'crash', because } as const
  const nothing = { hasCalled: false, hasProgressed: false, failure: null }
  return { exitCode: null, signal: 'none', outcome, uptimeMs: 0, ...nothing }
}
