/** One after the other. Who leaves while waiting gives up its place. */
export class Mutex {
  readonly #waiting: (() => void)[] = []
  #isBusy = false

  /** Does the work when it is its turn; rejects when the signal fires before. */
  async runExclusive<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    if (this.#isBusy) await this.#wait(signal)
    this.#isBusy = true
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onTurn = (): void => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(onTurn), 1)
        reject(signal.reason as Error)
      }
      this.#waiting.push(onTurn)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** It stays busy for the next in line, so that no newcomer slips in between. */
  #next(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#isBusy = false
  }
}
