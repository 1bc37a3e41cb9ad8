/** What was told last of each of so many: the oldest are forgotten. */
export class Recent<T> {
  readonly #max: number
  readonly #told = new Map<string, T>()

  constructor(max: number) {
    this.#max = max
  }

  set(key: string, value: T): void {
    this.#told.delete(key)
    this.#told.set(key, value)
    if (this.#told.size > this.#max) this.#told.delete(this.#told.keys().next().value!)
  }

  get(key: string): T | undefined {
    return this.#told.get(key)
  }
}
