import type { HttpError } from './errors.ts'

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

type Slots = { running: number; readonly queued: (() => void)[] }

/** Limits how many tasks of a key run at once. Some more wait, in order; further ones are refused. */
export class ConcurrencyLimit {
  readonly #max: number
  readonly #queueMax: number
  readonly #tooMany: () => HttpError
  readonly #slots = new Map<string, Slots>()

  constructor(max: number, queueMax: number, tooMany: () => HttpError) {
    this.#max = max
    this.#queueMax = queueMax
    this.#tooMany = tooMany
  }

  /** Runs the task when it is its turn. Rejects if one of the signals fires before that. */
  async run<T>(key: string, signals: readonly AbortSignal[], task: () => Promise<T>): Promise<T> {
    for (const signal of signals) signal.throwIfAborted()
    const slots = this.#slots.get(key) ?? { running: 0, queued: [] }
    this.#slots.set(key, slots)
    if (slots.running < this.#max) slots.running++
    else if (slots.queued.length < this.#queueMax)
      await turnIn(slots.queued, AbortSignal.any([...signals]))
    else throw this.#tooMany()
    try {
      return await task()
    } finally {
      // The next task takes over the slot, so that no newcomer gets ahead of it.
      const next = slots.queued.shift()
      if (next) next()
      else if (--slots.running === 0) this.#slots.delete(key)
    }
  }
}

function turnIn(queued: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onTurn = (): void => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }
    const onAbort = (): void => {
      queued.splice(queued.indexOf(onTurn), 1)
      reject(signal.reason as Error)
    }
    queued.push(onTurn)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
