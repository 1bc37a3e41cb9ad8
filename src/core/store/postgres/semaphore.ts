import { isTrouble } from './errors.ts'

type Waiting = { readonly go: () => void; readonly fail: (error: unknown) => void }

/** Lets a few run at a time; the others wait in the order they came. */
export class Turns {
  readonly #waiting: Waiting[] = []
  #free: number

  constructor(atOnce: number) {
    this.#free = atOnce
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((go, fail) => this.#waiting.push({ go, fail }))
    try {
      return await work()
    } catch (error) {
      // Without a connection the next one would fail the same way, each after the whole timeout.
      if (isTrouble(error)) for (const { fail } of this.#waiting.splice(0)) fail(error)
      throw error
    } finally {
      const next = this.#waiting.shift()
      if (next) next.go()
      else this.#free++
    }
  }
}
