import process from 'node:process'
import { EXIT } from '../../core/model/exit-codes.ts'
import { STOP_DEADLINE_MS } from '../../core/model/policy.ts'

export type StopSignalsOptions = {
  /** First signal: claim nothing new, release requests that were not started. */
  readonly stop: () => void
  /** Deadline: release unfinished requests. */
  readonly release: () => Promise<void>
  readonly log: (message: string) => void
}

/** The part of the deadline that is left for releasing. */
const RELEASE_MS = 2_000
const STOP_TIMEOUT_MS = STOP_DEADLINE_MS - RELEASE_MS

/**
 * Handles SIGTERM and SIGINT while requests are claimed: the first stops the crawlers, the second ends the process at once,
 * and so does the deadline. While nothing is claimed they are not handled.
 */
export class StopSignals {
  readonly #options: StopSignalsOptions
  #stoppedBy: NodeJS.Signals | null = null
  #deadline: NodeJS.Timeout | undefined

  constructor(options: StopSignalsOptions) {
    this.#options = options
  }

  /** The first signal; null before it. */
  get stoppedBy(): NodeJS.Signals | null {
    return this.#stoppedBy
  }

  listen(): void {
    this.unlisten()
    process.on('SIGTERM', this.#onSignal)
    process.on('SIGINT', this.#onSignal)
  }

  unlisten(): void {
    clearTimeout(this.#deadline)
    process.off('SIGTERM', this.#onSignal)
    process.off('SIGINT', this.#onSignal)
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    const { stop, release, log } = this.#options
    if (this.#stoppedBy) {
      log(`${signal} again: ending now. What was saved is safe; the rest is resumable.`)
      process.exit(EXIT.resumable)
    }
    this.#stoppedBy = signal
    log(`${signal}: finishing the pages in progress, then stopping. Send it again to end at once.`)
    this.#deadline = setTimeout(() => {
      log(`Still not stopped after ${STOP_TIMEOUT_MS / 1000} s: ending now. The rest is resumable.`)
      const late = setTimeout(() => process.exit(EXIT.resumable), RELEASE_MS)
      void release().finally(() => {
        clearTimeout(late)
        process.exit(EXIT.resumable)
      })
    }, STOP_TIMEOUT_MS)
    stop()
  }
}
