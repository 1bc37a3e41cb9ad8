import type { RunId, WorkerId } from '../../../core/model/id.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Target } from '../../../core/model/target.ts'
import type { Worker } from '../../../core/model/worker.ts'
import { processState } from '../../../core/host/identity.ts'
import type { Store } from '../../../core/store/store.ts'

/** The state of the run at one moment. */
export type Snapshot = {
  readonly run: Run
  /** Live workers of this run's source. */
  readonly workers: readonly Worker[]
  readonly held: ReadonlyMap<WorkerId, Target>
}

export async function takeSnapshot(store: Store, run: RunId, source: string): Promise<Snapshot> {
  const found = await store.run(run)
  if (!found) throw new Error(`Run ${run} is no longer in the database.`)
  const [observed, inProgress] = await Promise.all([
    store.observations(),
    store.targets(run, { statuses: ['in_progress'], limit: 1_000 }),
  ])
  return {
    run: found,
    workers: observed
      .map(({ worker }) => worker)
      .filter((worker) => worker.source === source && processState(worker.process) !== 'gone'),
    held: new Map(inProgress.items.map((target) => [target.worker!, target])),
  }
}
