import { decideNextCycle, NO_TRAIL, type Restarts, type Trail } from '../../decide/next-cycle.ts'
import { AlreadyRunning, EXIT, messageOf, StoreUnavailable } from '../../model/errors.ts'
import { inWords } from '../../model/time.ts'
import type { Store } from '../../store/store.ts'
import { REAL_CLOCK, TIMER_MAX_MS } from '../clock.ts'
import { alreadyRunning, describeBusy, lookAtGuard, type SeenGuard } from '../guarding.ts'
import type { CycleOptions } from './cycle.ts'
import type { CycleResult } from './settling.ts'
import { CurrentRunner } from './current-runner.ts'
import type { CommandRunner, RunnerOptions } from './runner.ts'

export type SupervisorOptions = {
  /** For looking, before there is a runner. */
  readonly store: Store
  readonly runner: () => Promise<RunnerOptions>
  readonly cycle: Omit<CycleOptions, 'cookie' | 'stop' | 'hurry'>
  readonly restarts: Restarts
  /** The next time a timetable names, from now in milliseconds; null: there is none. */
  readonly untilTick: () => number | null
  readonly ifRunning: 'wait' | 'skip' | 'fail'
  readonly log: (message: string) => void
}

/** How it ended, for whoever started it. */
export type Supervised = {
  readonly exitCode: number
  readonly last: CycleResult | null
  readonly gaveUp: string | null
  /** Somebody else runs it, and that is fine (`skip`). */
  readonly skipped: string | null
}

const ASK_AGAIN_MS = 500
const SAY_AGAIN_MS = 60_000

/** Runs a source's command cycle by cycle, one copy at a time, and holds the source for its whole life. */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #stopping = new AbortController()
  readonly #hurry = new AbortController()
  readonly #runner: CurrentRunner
  #lastRunner: CommandRunner | null = null
  #isHeld = false
  #trail: Trail = NO_TRAIL
  #saidBusyAt = -Infinity

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#runner = new CurrentRunner(options.runner, options.log)
  }

  get isHeard(): boolean {
    return this.#runner.isHeard
  }

  /** Ends the command and then this; `run` resolves when both are done. */
  stop(by: string): void {
    this.#stopping.abort(by)
  }

  /** No more politeness. */
  hurry(): void {
    this.#hurry.abort()
  }

  async run(): Promise<Supervised> {
    let last: CycleResult | null = null
    const done = (exitCode: number, more: Partial<Supervised> = {}): Supervised => ({
      exitCode,
      last,
      gaveUp: null,
      skipped: null,
      ...more,
    })
    let gaveUp: string | undefined
    try {
      await this.#refuseEarly()
      await this.#waitForTick()
      while (!this.#stopping.signal.aborted) {
        last = await this.#oneCycle()
        if (last === null) break
        if (last.isLost) return done(EXIT.leaseLost)
        if (last.isStopped) return done(last.exitCode)
        const next = decideNextCycle(
          this.#options.restarts,
          last.end,
          this.#trail,
          Date.now(),
          this.#options.untilTick(),
        )
        if (next.action === 'end') return done(last.exitCode)
        if (next.action === 'give-up') {
          gaveUp = `${next.because}; last: ${last.because}`
          return done(last.exitCode || EXIT.failed, { gaveUp })
        }
        this.#trail = next.trail
        this.#say(`${this.#outcome(last)}; starts again in ${inWords(next.inMs)} (${next.because})`)
        await this.#sleep(next.inMs)
      }
      // Between two cycles nothing is left undone; while waiting for another copy, all of it.
      return done(last ? EXIT.done : EXIT.resumable)
    } catch (error) {
      if (error instanceof AlreadyRunning && this.#options.ifRunning === 'skip')
        return done(EXIT.done, { skipped: error.message })
      throw error
    } finally {
      await this.#letGo(gaveUp)
    }
  }

  /** Null: stopped while it waited for another copy. */
  async #oneCycle(): Promise<CycleResult | null> {
    for (;;) {
      try {
        return await this.#tryCycle()
      } catch (error) {
        if (this.#stopping.signal.aborted && error === this.#stopping.signal.reason) return null
        // With another guardian it may yet go.
        if (error === this.#lastRunner?.failure) continue
        if (!this.#isWorthWaiting(error)) throw error
        await this.#wait(messageOf(error))
      }
    }
  }

  async #tryCycle(): Promise<CycleResult> {
    const { cycle } = this.#options
    const runner = await this.#runner.get()
    this.#lastRunner = runner
    const guard = await runner.hold(cycle.source, cycle.killTimeoutMs, (seen) => this.#busy(seen))
    this.#isHeld = true
    return runner.cycle({
      ...cycle,
      cookie: guard.cookie,
      stop: this.#stopping.signal,
      hurry: this.#hurry.signal,
    })
  }

  /** Another copy, if it is to be waited for; a database that was there before. */
  #isWorthWaiting(error: unknown): boolean {
    if (error instanceof AlreadyRunning) return this.#options.ifRunning === 'wait'
    return error instanceof StoreUnavailable && this.#lastRunner !== null
  }

  /** Who is told that somebody has it is told at once: a guardian of one's own takes a moment to start. */
  async #refuseEarly(): Promise<void> {
    const { store, cycle, ifRunning } = this.#options
    if (ifRunning === 'wait') return
    const guard = await store.guard(cycle.source)
    const seen = guard && (await lookAtGuard(store, guard))
    if (seen?.advice.action === 'refuse') throw alreadyRunning(seen)
  }

  /** Somebody has the source. One who is ending is waited for whatever was asked: it will be free. */
  async #busy(seen: SeenGuard): Promise<void> {
    const isEnding = seen.guard.endingSince !== null
    const willBeFree = seen.advice.action === 'wait'
    if (this.#options.ifRunning !== 'wait' && !isEnding && !willBeFree) throw alreadyRunning(seen)
    await this.#wait(describeBusy(seen, Date.now()))
  }

  async #wait(because: string): Promise<void> {
    const now = REAL_CLOCK.now()
    if (now - this.#saidBusyAt > SAY_AGAIN_MS) {
      this.#saidBusyAt = now
      this.#say(`waiting: ${because}`)
    }
    await this.#sleep(ASK_AGAIN_MS)
    this.#stopping.signal.throwIfAborted()
  }

  /** With a timetable the first cycle waits for its time as well. */
  async #waitForTick(): Promise<void> {
    const ms = this.#options.untilTick()
    if (ms === null) return
    this.#say(`first run in ${inWords(ms)}, at ${new Date(Date.now() + ms).toLocaleString()}`)
    await this.#sleep(ms)
  }

  async #letGo(gaveUp: string | undefined): Promise<void> {
    const { cycle, log } = this.#options
    // If the database is away, the freed presence says it all the same.
    if (this.#isHeld)
      await this.#lastRunner?.free(cycle.source, gaveUp).catch((error) => log(messageOf(error)))
    await this.#runner.stop()
  }

  async #sleep(ms: number): Promise<void> {
    const until = REAL_CLOCK.now() + ms
    for (let left = ms; left > 0; left = until - REAL_CLOCK.now()) {
      if (this.#stopping.signal.aborted) return
      await REAL_CLOCK.sleep(Math.min(left, TIMER_MAX_MS), this.#stopping.signal)
    }
  }

  #outcome({ end, because }: CycleResult): string {
    return `${end.outcome} (${because})`
  }

  #say(message: string): void {
    this.#options.log(message)
  }
}
