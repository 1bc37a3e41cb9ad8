import type { AuditEntry, Store } from '../core/store/store.ts'

/** Entries per call of `next`. */
const BATCH_SIZE = 1_000
/**
 * A number is assigned before its transaction ends, so a missing number may still appear. The reader waits for it until the
 * entry after it is this old; then the transaction has most likely been rolled back.
 */
const GAP_TIMEOUT_MS = 5_000

/**
 * Reads the audit trail as it grows: every entry once, in order. While the database is unreachable `next` throws; later it
 * continues where it was.
 */
export class AuditReader {
  readonly #store: Store
  #position: number

  /** `at`: starts after this entry; 0 for the whole trail. */
  constructor(store: Store, position: number) {
    this.#store = store
    this.#position = position
  }

  /** Starts after the newest entry. */
  static async fromNow(store: Store): Promise<AuditReader> {
    const [last] = await store.audit({ newestFirst: true, limit: 1 })
    return new AuditReader(store, last?.id ?? 0)
  }

  /** Number of the last entry that was read. */
  get at(): number {
    return this.#position
  }

  /** Returns the next entries; empty if there are none. */
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
