import type { WorkerId } from '../model/id.ts'
import type { Store } from '../store/store.ts'
import type { Clock } from '../host/clock.ts'

const MINUTE_MS = 60_000
const LEADER_MS = 1.5 * MINUTE_MS
/** A chart shows a week; the day beyond is for those who look at its first hour. */
const KEEP_MS = 8 * 24 * 60 * MINUTE_MS
const PRUNE_EVERY = 60
/** Who has been taken for dead may come back within the hour, with all that it has measured. */
const FOLD_AFTER_MS = 60 * MINUTE_MS
/** How long the row of an ended worker is kept, and how many of them at most. */
const KEEP_WORKERS_MS = 24 * 60 * MINUTE_MS
const KEEP_WORKERS_MAX = 1_000
const KEEP_ALERTS_MS = 30 * 24 * 60 * MINUTE_MS

/**
 * Has the store write down once a minute how far each run is, on the minute, for whoever wants to see a pace. Of all
 * processes one does it.
 */
export class Sampler {
  readonly #store: Store
  readonly #worker: WorkerId
  readonly #clock: Clock
  #samples = 0

  constructor(store: Store, worker: WorkerId, clock: Clock) {
    this.#store = store
    this.#worker = worker
    this.#clock = clock
  }

  /** Until it is told to stop. */
  async run(stop: AbortSignal, onError: (error: unknown) => void): Promise<void> {
    for (;;) {
      await this.#clock.sleep(MINUTE_MS - (this.#clock.wallNow() % MINUTE_MS), stop)
      if (stop.aborted) return
      await this.sample().catch(onError)
    }
  }

  /** If it is this worker's turn. */
  async sample(): Promise<void> {
    if (!(await this.#store.acquireLeadership(this.#worker, LEADER_MS, 'sample'))) return
    await this.#store.takeSample()
    if (this.#samples++ % PRUNE_EVERY !== 0) return
    const now = await this.#store.now()
    await this.#store.pruneSamples(now - KEEP_MS)
    await this.#store.foldWorkerStats(now - FOLD_AFTER_MS)
    await this.#store.removeEndedWorkers({
      endedBefore: now - KEEP_WORKERS_MS,
      settledBefore: now - FOLD_AFTER_MS,
      keepNewest: KEEP_WORKERS_MAX,
    })
    await this.#store.removeResolvedAlerts(now - KEEP_ALERTS_MS)
    await this.#store.pruneSessions()
  }
}
