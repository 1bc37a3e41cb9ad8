/** The number of keys kept; the oldest is dropped first. */
const KEYS_MAX = 10_000

type Window = { readonly since: number; count: number }

/** Limits the calls per key within a time window. */
export class RateLimit {
  readonly #max: number
  readonly #perMs: number
  readonly #now: () => number
  readonly #windows = new Map<string, Window>()

  constructor(max: number, perMs: number, now: () => number = () => performance.now()) {
    this.#max = max
    this.#perMs = perMs
    this.#now = now
  }

  /** Counts a call. Returns null if it is within the limit, else how long to wait; `isFirst` for the first refusal of a window. */
  take(key: string): { readonly afterSeconds: number; readonly isFirst: boolean } | null {
    const now = this.#now()
    const window = this.#windowOf(key, now)
    window.count++
    if (window.count <= this.#max) return null
    const afterSeconds = Math.max(1, Math.ceil((window.since + this.#perMs - now) / 1_000))
    return { afterSeconds, isFirst: window.count === this.#max + 1 }
  }

  #windowOf(key: string, now: number): Window {
    const found = this.#windows.get(key)
    if (found && now - found.since < this.#perMs) return found
    const fresh = { since: now, count: 0 }
    this.#windows.delete(key)
    this.#windows.set(key, fresh)
    if (this.#windows.size > KEYS_MAX) {
      const [oldest] = this.#windows.keys()
      this.#windows.delete(oldest!)
    }
    return fresh
  }
}
