import { count, noStats, type Latency, type WorkerStats } from '../model/latency.ts'
import type { Store } from '../store/store.ts'

/** Measures how long work waits for the store. Costs two looks at a clock per call, and one comparison or two. */
export class Stopwatch {
  /** Since the process began; it only grows. */
  readonly stats: WorkerStats = noStats()
  readonly #onCount: () => void

  constructor(onCount: () => void) {
    this.#onCount = onCount
  }

  /** The same store, with the watch on claims and checkpoints. A call that failed is not counted. */
  on(store: Store): Store {
    const { checkpoint, claim } = this.stats
    return {
      ...store,
      checkpoint: (pages, inTransaction) =>
        this.#time(checkpoint, () => store.checkpoint(pages, inTransaction)),
      claim: (request) => this.#time(claim, () => store.claim(request)),
      begin: (request) => this.#time(claim, () => store.begin(request)),
    }
  }

  async #time<T>(latency: Latency, call: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    const answer = await call()
    count(latency, (performance.now() - startedAt) / 1_000)
    this.#onCount()
    return answer
  }
}
