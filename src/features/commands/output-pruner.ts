import { messageOf } from '../../core/model/errors.ts'
import type { RunId } from '../../core/model/id.ts'
import { isLive } from '../../core/model/run.ts'
import type { Store } from '../../core/store/store.ts'
import { removeRunFolder } from '../../lib/files/data-folder.ts'

export type OutputPrunerOptions = {
  readonly store: Store
  /** How many ended runs of a source keep their files. */
  readonly keep: number
  readonly log: (message: string) => void
}

/** Runs looked at in one go: twice as many a cycle, at most. */
const PAGE_SIZE = 50
/** For an id: older than every run. */
const OLDEST = ''

/** Removes the files of runs that ended long ago. What the database knows of them stays. */
export class OutputPruner {
  readonly #options: OutputPrunerOptions
  /** How far back each source was looked at: before this process there may have been thousands of runs. */
  readonly #prunedUpTo = new Map<string, RunId>()
  #hasLogged = false

  constructor(options: OutputPrunerOptions) {
    this.#options = options
  }

  /**
   * To be called while the source is held, so that nobody takes up a run whose files are going. It never throws: what
   * cannot be removed stays, and is told once.
   */
  async prune(base: string, source: string, signal: AbortSignal): Promise<void> {
    try {
      const kept = await this.#oldestKept(source)
      if (kept === null) return
      // What is old since the last cycle comes first. From there it goes back, a page with each cycle, and begins anew.
      const recent = await this.#pruneBefore(kept, base, source, signal)
      const from = this.#prunedUpTo.get(source) ?? OLDEST
      const isFurther = from !== OLDEST && from < recent
      const reached = isFurther ? await this.#pruneBefore(from, base, source, signal) : recent
      this.#prunedUpTo.set(source, reached)
    } catch (error) {
      this.#logOnce(error)
    }
  }

  /** Of the ended runs that keep their files the oldest; null while there are not that many. */
  async #oldestKept(source: string): Promise<RunId | null> {
    const { store, keep } = this.#options
    let found = 0
    for (let after: string | undefined; ;) {
      const { items, next } = await store.runs({ source, limit: Math.min(keep + 1, 500), after })
      for (const { id, status } of items) if (!isLive(status) && ++found === keep) return id
      if (next === null) return null
      after = next
    }
  }

  /** One page of runs older than this one. Answers how far it came. */
  async #pruneBefore(
    run: RunId,
    base: string,
    source: string,
    signal: AbortSignal,
  ): Promise<RunId> {
    const { items, next } = await this.#options.store.runs({ source, limit: PAGE_SIZE, after: run })
    let reached = run
    for (const { id, status } of items) {
      if (signal.aborted) return reached
      if (!isLive(status)) await removeRunFolder(base, id).catch((error) => this.#logOnce(error))
      reached = id
    }
    return next === null ? OLDEST : reached
  }

  #logOnce(error: unknown): void {
    if (this.#hasLogged) return
    this.#hasLogged = true
    this.#options.log(`output of old runs could not be removed: ${messageOf(error)}`)
  }
}
