import type { Member } from '../../core/host/process-tree.ts'
import type { Store } from '../../core/store/store.ts'
import type { Life } from './process-run.ts'
import type { Progress } from './progress.ts'

const LEASE_MS = 15_000
/** Beyond the lease: the others must notice, and take over. */
const OVERSLEPT_MS = 2_000

/**
 * Lives that were stopped (SIGSTOP) for longer than their lease while a second copy is at work; then they wake up, know
 * nothing of it, and write. The fence must refuse that.
 */
export class Sleepers {
  readonly #store: Store
  readonly #progress: Progress
  readonly #asleep: { readonly life: Life; readonly wakes: NodeJS.Timeout }[] = []

  constructor(store: Store, progress: Progress) {
    this.#store = store
    this.#progress = progress
  }

  /** One that has just been stopped. */
  async add(life: Life, members: readonly Member[]): Promise<void> {
    const asleepMs = (await longestLeaseMs(this.#store)) + OVERSLEPT_MS
    const wakes = setTimeout(() => {
      this.#progress.tell('SIGCONT: the sleeper wakes up')
      life.signal('SIGCONT', members)
    }, asleepMs)
    this.#asleep.push({ life, wakes })
  }

  /** Nobody stays stopped. */
  wakeAll(): void {
    for (const { life, wakes } of this.#asleep.splice(0)) {
      clearTimeout(wakes)
      life.signal('SIGCONT', life.members())
    }
  }
}

/** Of those who have not ended. */
export async function longestLeaseMs(store: Store): Promise<number> {
  const leases = (await store.workers()).map(({ worker }) => worker.leaseMs)
  return Math.max(...(leases.length > 0 ? leases : [LEASE_MS]))
}
