/** Keeps the most recently set entries, up to a maximum. */
export class LruMap<T> {
  readonly #max: number
  readonly #entries = new Map<string, T>()

  constructor(max: number) {
    this.#max = max
  }

  set(key: string, value: T): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size > this.#max) this.#entries.delete(this.#entries.keys().next().value!)
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)
  }
}
