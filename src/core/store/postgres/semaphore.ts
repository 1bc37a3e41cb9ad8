import { isConnectionError } from './errors.ts'

type Waiting = { readonly start: () => void; readonly fail: (error: unknown) => void }

/** Lets a few run at a time; the others wait in the order they came. */
export class Semaphore {
  readonly #waiting: Waiting[] = []
  #available: number

  constructor(atOnce: number) {
    this.#available = atOnce
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#available > 0) this.#available--
    else await new Promise<void>((go, fail) => this.#waiting.push({ start: go, fail }))
    try {
      return await work()
    } catch (error) {
      // Without a connection the next one would fail the same way, each after the whole timeout.
      if (isConnectionError(error)) for (const { fail } of this.#waiting.splice(0)) fail(error)
      throw error
    } finally {
      const next = this.#waiting.shift()
      if (next) next.start()
      else this.#available++
    }
  }
}
