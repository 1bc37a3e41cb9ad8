import type { ProcessRef } from '../../core/host/process-tree.ts'
import type { Store } from '../../core/store/store.ts'
import type { ProcessRun } from './process-run.ts'
import type { Progress } from './progress.ts'

const LEASE_MS = 15_000
/** Beyond the lease: the others must notice, and take over. */
const BEYOND_LEASE_MS = 2_000

/**
 * Lives that were stopped (SIGSTOP) for longer than their lease while a second copy is at work; then they wake up, know
 * nothing of it, and write. The fence must refuse that.
 */
export class PausedProcesses {
  readonly #store: Store
  readonly #progress: Progress
  readonly #paused: { readonly run: ProcessRun; readonly timer: NodeJS.Timeout }[] = []

  constructor(store: Store, progress: Progress) {
    this.#store = store
    this.#progress = progress
  }

  /** One that has just been stopped. */
  async add(run: ProcessRun, processes: readonly ProcessRef[]): Promise<void> {
    const pausedMs = (await longestLeaseMs(this.#store)) + BEYOND_LEASE_MS
    const timer = setTimeout(() => {
      this.#progress.log('SIGCONT: the sleeper wakes up')
      run.signal('SIGCONT', processes)
    }, pausedMs)
    this.#paused.push({ run, timer })
  }

  /** Nobody stays stopped. */
  resumeAll(): void {
    for (const { run, timer } of this.#paused.splice(0)) {
      clearTimeout(timer)
      run.signal('SIGCONT', run.processes())
    }
  }
}

/** Of those who have not ended. */
export async function longestLeaseMs(store: Store): Promise<number> {
  const leases = (await store.observations()).map(({ worker }) => worker.leaseMs)
  return Math.max(...(leases.length > 0 ? leases : [LEASE_MS]))
}
