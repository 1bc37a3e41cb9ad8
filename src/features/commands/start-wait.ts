import { unstuckCommand } from '../../core/model/shell-command.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { messageOf } from '../../core/model/errors.ts'
import type { Paused } from '../../core/model/run.ts'
import { humanizeDuration } from '../../core/model/time.ts'
import type { Store } from '../../core/store/store.ts'
import { abortable } from '../../core/worker/abortable.ts'
import { SOURCE_STORE, type SourceState, type SourceStore } from '../sources/store/store.ts'

export type StartWaitOptions = {
  readonly store: Store
  readonly source: string
  readonly stopping: AbortSignal
  /** Waiting is pointless, as the database is lost. */
  readonly isLost: () => boolean
  /** Milliseconds until the next time of the schedule; null: no schedule. */
  readonly msUntilNextTick: () => number | null
  readonly log: (message: string) => void
}

/** How soon a request to start now, and the end of a pause, are noticed. */
const POLL_MS = 1_000

/** Waits between two cycles of a command, in view of its operators: they see the next start, can ask for it now, or pause the source. */
export class StartWait {
  readonly #options: StartWaitOptions
  #sources: Promise<SourceStore> | null = null
  #lastError = ''

  constructor(options: StartWaitOptions) {
    this.#options = options
  }

  /**
   * Waits for this long, or until an operator asks to run now. While the source is paused, the times of a schedule are
   * skipped; any other start follows the end of the pause.
   */
  async forMs(ms: number): Promise<void> {
    let until = new Deadline(ms)
    await this.#record(ms)
    for (;;) {
      await REAL_CLOCK.sleep(Math.min(Math.max(0, until.leftMs()), POLL_MS), this.#options.stopping)
      const state = await this.#read()
      // What is recorded counts for nothing once the source is unlocked.
      if (this.#isOver()) return
      if (state?.isRunNow) {
        this.#options.log('starting now, as requested')
        break
      }
      if (until.leftMs() > 0) continue
      if (!state?.paused) break
      const next = this.#options.msUntilNextTick()
      if (next === null) await this.whilePaused()
      else {
        this.#options.log(
          `skipped: ${describePause(this.#options.source, state.paused)}; next time in ${humanizeDuration(next)}`,
        )
        until = new Deadline(next)
        await this.#record(next)
      }
    }
    await this.#record(null)
  }

  /** Waits for the end of a pause. */
  async whilePaused(): Promise<void> {
    const { source, log, stopping } = this.#options
    for (let isLogged = false; !this.#isOver(); isLogged = true) {
      const state = await this.#read()
      if (!state?.paused) return
      if (!isLogged) log(`waiting: ${describePause(source, state.paused)}`)
      await REAL_CLOCK.sleep(POLL_MS, stopping)
    }
  }

  #isOver(): boolean {
    return this.#options.stopping.aborted || this.#options.isLost()
  }

  /** Null while the database cannot be read: then the start itself decides. */
  async #read(): Promise<SourceState | null> {
    const [state] = (await this.#try((all) => all.sourceStates([this.#options.source]))) ?? []
    return state ?? null
  }

  async #record(inMs: number | null): Promise<void> {
    await this.#try((sources) => sources.setNextStart(this.#options.source, inMs))
  }

  /** Ends at once when the supervisor is stopped: a database that does not respond must not delay that. */
  async #try<T>(call: (sources: SourceStore) => Promise<T>): Promise<T | null> {
    const { store, stopping } = this.#options
    try {
      this.#sources ??= store.extend(SOURCE_STORE)
      const sources = await this.#sources
      const result = await abortable(stopping, () => call(sources))
      this.#lastError = ''
      return result
    } catch (error) {
      if (stopping.aborted) return null
      const message = messageOf(error)
      if (message !== this.#lastError) this.#options.log(message)
      this.#lastError = message
      return null
    }
  }
}

function describePause(source: string, { because }: Paused): string {
  return `${source} is paused (${because}) until \`${unstuckCommand('unpause', [source])}\``
}

/** By the wall clock too, so that a machine that slept, or whose clock was set, continues in time. */
class Deadline {
  readonly #until: number
  readonly #at: number

  constructor(ms: number) {
    this.#until = REAL_CLOCK.now() + ms
    this.#at = Date.now() + ms
  }

  leftMs(): number {
    return Math.min(this.#until - REAL_CLOCK.now(), this.#at - Date.now())
  }
}
