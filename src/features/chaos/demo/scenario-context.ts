import type { RunId, WorkerId } from '../../../core/model/id.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { Store } from '../../../core/store/store.ts'
import type { WorkerPool } from './worker-pool.ts'
import type { Snapshot } from './snapshot.ts'
import type { Reporter } from './reporter.ts'
import type { Random } from './random.ts'
import type { Site } from './site.ts'

/** What the acts have in common. */
export type ScenarioContext = {
  readonly store: Store
  readonly run: RunId
  readonly workerPool: WorkerPool
  readonly site: Site
  readonly random: Random
  readonly reporter: Reporter
  /** Fires when the run is over, or Ctrl-C was pressed: nothing more is to be done. */
  readonly over: AbortSignal
  readonly snapshot: () => Promise<Snapshot>
}

/** A kill -9, and what became of each target that the worker had in hand. */
export type Kill = {
  readonly at: Millis
  readonly worker: WorkerId
  readonly recoveries: readonly Recovery[]
}

/** From the kill, until anybody could have the target, and until somebody had it. */
export type Recovery = {
  readonly claimableMs: number
  readonly takenUpMs: number
  readonly by: WorkerId
}

/** A SIGTERM of all, and how long it took. */
export type Deploy = { readonly stoppedMs: number; readonly backMs: number | null }

/** A worker that was stopped for longer than its lease, and woke up to write. */
export type Zombie = { readonly silentMs: number; readonly refused: number }
