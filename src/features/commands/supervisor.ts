import { decideNextCycle, NO_TRAIL, type Restarts, type Trail } from './next-cycle.ts'
import { AlreadyRunning, EXIT, messageOf, StoreUnavailable } from '../../core/model/errors.ts'
import type { Guard } from '../../core/model/source-lock.ts'
import { inWords } from '../../core/model/time.ts'
import type { Store } from '../../core/store/store.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import {
  alreadyRunning,
  describeBusy,
  lookAtGuard,
  type SeenGuard,
} from '../../core/recovery/source-lock.ts'
import type { CycleOptions } from './cycle.ts'
import type { CycleResult } from './settle-run.ts'
import { CurrentRunner } from './current-runner.ts'
import { GuardianLost } from './watchdog.ts'
import type { CommandRunner, RunnerOptions } from './runner.ts'
import type { Tracking } from './start-tagged.ts'

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
  /** How the processes of the command were found; null when none was started. */
  readonly tracking: Tracking | null
}

const ASK_AGAIN_MS = 500
const SAY_AGAIN_MS = 60_000
const SLEEP_MAX_MS = 5_000

const NOTHING_DONE: Supervised = {
  exitCode: EXIT.resumable,
  last: null,
  gaveUp: null,
  skipped: null,
  tracking: null,
}

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
    let gaveUp: string | undefined
    try {
      await this.#refuseEarly()
      const ended = await this.#cycles()
      gaveUp = ended.gaveUp ?? undefined
      return ended
    } catch (error) {
      if (error instanceof AlreadyRunning && this.#options.ifRunning === 'skip')
        return { ...NOTHING_DONE, exitCode: EXIT.done, skipped: error.message }
      throw error
    } finally {
      await this.#letGo(gaveUp)
    }
  }

  async #cycles(): Promise<Supervised> {
    const { restarts, untilTick } = this.#options
    const tick = untilTick()
    if (tick !== null && !(await this.#waitForTick(tick))) return NOTHING_DONE
    // Stopped while it waited for another copy, all of it is left; for its time, nothing; between two cycles, what the
    // last one left.
    let stopped = tick === null ? NOTHING_DONE : { ...NOTHING_DONE, exitCode: EXIT.done }
    while (!this.#stopping.signal.aborted) {
      const last = await this.#patiently(() => this.#cycle())
      if (last === null) break
      const done = (exitCode: number, gaveUp: string | null = null): Supervised => ({
        exitCode,
        last,
        gaveUp,
        skipped: null,
        tracking: this.#lastRunner?.tracking ?? null,
      })
      if (this.#lastRunner?.isOutdated) throw this.#lastRunner.failure!
      if (last.isLost) {
        if (this.#lastRunner) await this.#lastRunner.assertKnown()
        return done(EXIT.leaseLost)
      }
      if (last.isStopped) return done(last.exitCode)
      const next = decideNextCycle(restarts, last.end, this.#trail, REAL_CLOCK.now(), untilTick())
      if (next.action === 'end') return done(last.exitCode)
      if (next.action === 'give-up') {
        return done(last.exitCode || EXIT.failed, `${next.because}; last: ${last.because}`)
      }
      this.#trail = next.trail
      const outcome = `${last.end.outcome} (${last.because})`
      this.#say(`${outcome}; starts again in ${inWords(next.inMs)} (${next.because})`)
      stopped = done(last.isLeft ? EXIT.resumable : EXIT.done)
      await this.#sleep(next.inMs)
    }
    return stopped
  }

  /** Tries until it goes, as far as that is worth waiting for. Null: stopped meanwhile. */
  async #patiently<T>(act: () => Promise<T>): Promise<T | null> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        return await act()
      } catch (error) {
        if (signal.aborted && error === signal.reason) return null
        // With another guardian it may yet go.
        const isGuardians = error !== null && error === this.#lastRunner?.failure
        if (isGuardians && !this.#lastRunner?.isOutdated) continue
        if (!this.#isWorthWaiting(error)) throw error
        await this.#wait(messageOf(error))
      }
    }
    return null
  }

  async #cycle(): Promise<CycleResult> {
    const { runner, guard } = await this.#hold()
    return runner.cycle({
      ...this.#options.cycle,
      cookie: guard.cookie,
      stop: this.#stopping.signal,
      hurry: this.#hurry.signal,
    })
  }

  async #hold(): Promise<{ runner: CommandRunner; guard: Guard }> {
    const { source, killTimeoutMs } = this.#options.cycle
    const runner = await this.#runner.get()
    this.#lastRunner = runner
    const guard = await runner.hold(source, killTimeoutMs, (seen) => this.#busy(seen))
    this.#isHeld = true
    return { runner, guard }
  }

  /** Another copy, if it is to be waited for; a database that was there before; a guardian that may start yet. */
  #isWorthWaiting(error: unknown): boolean {
    if (error instanceof AlreadyRunning) return this.#options.ifRunning === 'wait'
    if (error instanceof GuardianLost) return this.#options.restarts.restart !== 'never'
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
    await this.#wait(describeBusy(seen, await this.#options.store.now()))
    this.#stopping.signal.throwIfAborted()
  }

  async #wait(because: string): Promise<void> {
    const now = REAL_CLOCK.now()
    if (now - this.#saidBusyAt > SAY_AGAIN_MS) {
      this.#saidBusyAt = now
      this.#say(`waiting: ${because}`)
    }
    await this.#sleep(ASK_AGAIN_MS)
  }

  /** With a timetable the first cycle waits for its time as well, holding the source. False: stopped while it did not. */
  async #waitForTick(ms: number): Promise<boolean> {
    const held = await this.#patiently(() => this.#hold())
    if (held === null) return false
    this.#say(`first run in ${inWords(ms)}, at ${new Date(Date.now() + ms).toLocaleString()}`)
    await this.#sleep(ms)
    return true
  }

  async #letGo(gaveUp: string | undefined): Promise<void> {
    const { cycle, log } = this.#options
    // If the database is away, the freed presence says it all the same.
    if (this.#isHeld)
      await this.#lastRunner?.free(cycle.source, gaveUp).catch((error) => log(messageOf(error)))
    await this.#runner.stop()
  }

  /**
   * By the clock on the wall too: a machine that was asleep, or whose clock was set, still wakes up in time. Cut short
   * when the database is lost meanwhile.
   */
  async #sleep(ms: number): Promise<void> {
    const [until, at] = [REAL_CLOCK.now() + ms, Date.now() + ms]
    const left = (): number => Math.min(until - REAL_CLOCK.now(), at - Date.now())
    const isOver = (): boolean =>
      this.#stopping.signal.aborted || this.#lastRunner?.isOutdated === true
    while (left() > 0 && !isOver()) {
      await REAL_CLOCK.sleep(Math.min(left(), SLEEP_MAX_MS), this.#stopping.signal)
    }
  }

  #say(message: string): void {
    this.#options.log(message)
  }
}
