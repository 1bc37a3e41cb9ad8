import type { HttpError } from './errors.ts'

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
