import type { Millis } from '../core/model/time.ts'
import type { Store } from '../core/store/store.ts'
import { workerView, type WorkerView } from './view.ts'

/**
 * Every worker that has not ended, with what its evidence and its targets say. A process of no source that holds nothing
 * is left out: a server that only looks after the others, or one's own code between two runs. `workers`: for who has them
 * already.
 */
export async function listWorkers(
  store: Store,
  now: Millis,
  workers?: Awaited<ReturnType<Store['observations']>>,
): Promise<WorkerView[]> {
  const [workerViews, holdings] = await Promise.all([
    workers ?? store.observations(),
    store.holdings(),
  ])
  const byWorker = Map.groupBy(holdings, ({ worker }) => worker)
  return workerViews
    .filter(({ worker }) => worker.source !== '' || byWorker.has(worker.id))
    .map((witnessed) => workerView(witnessed, byWorker.get(witnessed.worker.id) ?? [], now))
}
