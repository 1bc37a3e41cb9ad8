/** One after the other. Who leaves while waiting gives up its place. */
export class Line {
  readonly #waiting: (() => void)[] = []
  #isBusy = false

  /** Does the work when it is its turn; rejects when the signal fires before. */
  async take<T>(leaves: AbortSignal, work: () => Promise<T>): Promise<T> {
    leaves.throwIfAborted()
    if (this.#isBusy) await this.#wait(leaves)
    this.#isBusy = true
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  #wait(leaves: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onTurn = (): void => {
        leaves.removeEventListener('abort', onLeave)
        resolve()
      }
      const onLeave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(onTurn), 1)
        reject(leaves.reason as Error)
      }
      this.#waiting.push(onTurn)
      leaves.addEventListener('abort', onLeave, { once: true })
    })
  }

  /** It stays busy for the next in line, so that no newcomer slips in between. */
  #next(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#isBusy = false
  }
}
