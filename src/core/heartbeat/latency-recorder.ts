import {
  recordLatency,
  emptyStats,
  type LatencyHistogram,
  type WorkerStats,
} from '../model/latency.ts'
import type { Store } from '../store/store.ts'

/** Measures how long work waits for the store. Costs two looks at a clock per call, and one comparison or two. */
export class LatencyRecorder {
  /** Since the process began; it only grows. */
  readonly stats: WorkerStats = emptyStats()
  readonly #onRecord: () => void

  constructor(onRecord: () => void) {
    this.#onRecord = onRecord
  }

  /** The same store, with the watch on claims and checkpoints. A call that failed is not counted. */
  instrument(store: Store): Store {
    const { checkpoint, claim } = this.stats
    return {
      ...store,
      checkpoint: (pages, inTransaction) =>
        this.#measure(checkpoint, () => store.checkpoint(pages, inTransaction)),
      claim: (request) => this.#measure(claim, () => store.claim(request)),
      begin: (request) => this.#measure(claim, () => store.begin(request)),
    }
  }

  async #measure<T>(latency: LatencyHistogram, call: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    const result = await call()
    recordLatency(latency, (performance.now() - startedAt) / 1_000)
    this.#onRecord()
    return result
  }
}
