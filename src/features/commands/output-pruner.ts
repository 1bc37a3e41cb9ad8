import { messageOf } from '../../core/model/errors.ts'
import type { RunId } from '../../core/model/id.ts'
import { isLive } from '../../core/model/run.ts'
import type { Store } from '../../core/store/store.ts'
import { removeRunFolder } from '../../lib/files/data-folder.ts'

export type OutputPrunerOptions = {
  readonly store: Store
  /** The number of ended runs per source that keep their files. */
  readonly keep: number
  readonly log: (message: string) => void
}

/** Runs read at once; at most two such pages per cycle. */
const PAGE_SIZE = 50
/** An id below that of every run. */
const OLDEST = ''

/** Removes the output files of old ended runs. Their rows stay in the database. */
export class OutputPruner {
  readonly #options: OutputPrunerOptions
  /** How far back each source was read: there may be thousands of older runs. */
  readonly #prunedUpTo = new Map<string, RunId>()
  #hasLogged = false

  constructor(options: OutputPrunerOptions) {
    this.#options = options
  }

  /**
   * Called while the source is locked, so that no run is resumed while its files are removed. Never throws: files that
   * cannot be removed stay, and this is logged once.
   */
  async prune(base: string, source: string, signal: AbortSignal): Promise<void> {
    try {
      const kept = await this.#oldestKept(source)
      if (kept === null) return
      // Runs that became old since the last cycle come first, then a page of older ones per cycle.
      const recent = await this.#pruneBefore(kept, base, source, signal)
      const from = this.#prunedUpTo.get(source) ?? OLDEST
      const isFurther = from !== OLDEST && from < recent
      const reached = isFurther ? await this.#pruneBefore(from, base, source, signal) : recent
      this.#prunedUpTo.set(source, reached)
    } catch (error) {
      this.#logOnce(error)
    }
  }

  /** Returns the oldest ended run that keeps its files; null while there are fewer. */
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

  /** Prunes one page of runs older than this one. Returns the last id it read. */
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
