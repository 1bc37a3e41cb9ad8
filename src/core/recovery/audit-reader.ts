import type { AuditEntry, Store } from '../store/store.ts'

/** Of one look, at most; the next one goes on behind it. */
const BATCH_SIZE = 1_000
/**
 * Numbers are given out before their transactions end, so a number may be missing that is still to come. It is waited for
 * until what came behind it is this old; then its transaction was rolled back, as far as one can know.
 */
const GAP_TIMEOUT_MS = 5_000

/**
 * Reads the audit trail as it grows: every entry once, in the order of their numbers. Whoever wants to hear of what was
 * done has one and asks it at his own pace. When the database is away `next` throws, and goes on where it was afterwards.
 */
export class AuditReader {
  readonly #store: Store
  #position: number

  /** `at`: the entry after which to begin; 0 for the whole trail. */
  constructor(store: Store, position: number) {
    this.#store = store
    this.#position = position
  }

  /** Hears only of what comes from now on. */
  static async fromNow(store: Store): Promise<AuditReader> {
    const [last] = await store.audit({ newestFirst: true, limit: 1 })
    return new AuditReader(store, last?.id ?? 0)
  }

  /** The last entry that was read. */
  get at(): number {
    return this.#position
  }

  /** What was entered since, up to a bound; empty when there is nothing more. */
  async next(): Promise<AuditEntry[]> {
    const found = await this.#store.audit({ after: this.#position, limit: BATCH_SIZE })
    const isContiguous = found.every(({ id }, n) => id === this.#position + 1 + n)
    const settledBefore = isContiguous ? Infinity : (await this.#store.now()) - GAP_TIMEOUT_MS
    const entries: AuditEntry[] = []
    for (const entry of found) {
      if (entry.id !== this.#position + 1 && entry.at > settledBefore) break
      entries.push(entry)
      this.#position = entry.id
    }
    return entries
  }
}
