import { messageOf } from '../../core/model/errors.ts'
import type { RunId } from '../../core/model/id.ts'
import { isLive } from '../../core/model/run.ts'
import type { Store } from '../../core/store/store.ts'
import { removeRunFolder } from '../../lib/files/data-folder.ts'

export type OldOutputOptions = {
  readonly store: Store
  /** How many ended runs of a source keep their files. */
  readonly keep: number
  readonly log: (message: string) => void
}

/** Runs looked at in one go: twice as many a cycle, at most. */
const PAGE = 50
/** For an id: older than every run. */
const THE_END = ''

/** Removes the files of runs that ended long ago. What the database knows of them stays. */
export class OldOutput {
  readonly #options: OldOutputOptions
  /** How far back each source was looked at: before this process there may have been thousands of runs. */
  readonly #reached = new Map<string, RunId>()
  #hasTold = false

  constructor(options: OldOutputOptions) {
    this.#options = options
  }

  /**
   * To be called while the source is held, so that nobody takes up a run whose files are going. It never throws: what
   * cannot be removed stays, and is told once.
   */
  async remove(base: string, source: string, enough: AbortSignal): Promise<void> {
    try {
      const kept = await this.#oldestKept(source)
      if (kept === null) return
      // What is old since the last cycle comes first. From there it goes back, a page with each cycle, and begins anew.
      const near = await this.#removeBefore(kept, base, source, enough)
      const from = this.#reached.get(source) ?? THE_END
      const isFurther = from !== THE_END && from < near
      const far = isFurther ? await this.#removeBefore(from, base, source, enough) : near
      this.#reached.set(source, far)
    } catch (error) {
      this.#tell(error)
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
  async #removeBefore(
    run: RunId,
    base: string,
    source: string,
    enough: AbortSignal,
  ): Promise<RunId> {
    const { items, next } = await this.#options.store.runs({ source, limit: PAGE, after: run })
    let reached = run
    for (const { id, status } of items) {
      if (enough.aborted) return reached
      if (!isLive(status)) await removeRunFolder(base, id).catch((error) => this.#tell(error))
      reached = id
    }
    return next === null ? THE_END : reached
  }

  #tell(error: unknown): void {
    if (this.#hasTold) return
    this.#hasTold = true
    this.#options.log(`output of old runs could not be removed: ${messageOf(error)}`)
  }
}
