import type { Checkpoint } from '../../model/checkpoint.ts'
import type { Outcome } from '../../model/claim.ts'

type Waiting = {
  readonly page: Checkpoint
  readonly settle: (outcome: Outcome<{ seq: number }>) => void
  readonly fail: (error: unknown) => void
}

const PAGES_MAX = 16
const LENGTH_MAX = 1_000_000

/** Saves pages that had to wait for a connection together: one round trip and one sync to disk for all of them. */
export class PageBatches {
  readonly #save: (pages: readonly Checkpoint[]) => Promise<Outcome<{ seq: number }>[]>
  readonly #waiting: Waiting[] = []
  #free: number

  constructor(
    atOnce: number,
    save: (pages: readonly Checkpoint[]) => Promise<Outcome<{ seq: number }>[]>,
  ) {
    this.#free = atOnce
    this.#save = save
  }

  add(page: Checkpoint): Promise<Outcome<{ seq: number }>> {
    return new Promise((settle, fail) => {
      this.#waiting.push({ page, settle, fail })
      if (this.#free > 0) void this.#saveNext()
    })
  }

  async #saveNext(): Promise<void> {
    this.#free--
    for (let batch = this.#nextBatch(); batch.length > 0; batch = this.#nextBatch()) {
      try {
        const outcomes = await this.#save(batch.map(({ page }) => page))
        for (const [n, { settle }] of batch.entries()) settle(outcomes[n]!)
      } catch (error) {
        for (const { fail } of batch) fail(error)
      }
    }
    this.#free++
  }

  #nextBatch(): Waiting[] {
    let [count, length] = [0, 0]
    for (const { page } of this.#waiting) {
      for (const { data } of page.items) length += data.length
      if (count === PAGES_MAX || (count > 0 && length > LENGTH_MAX)) break
      count++
    }
    return this.#waiting.splice(0, count)
  }
}
