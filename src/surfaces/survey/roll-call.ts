import type { Millis } from '../../model/time.ts'
import { HELD_MAX } from '../../runtime/judgement.ts'
import type { Store } from '../../store/store.ts'
import { workerView, type WorkerView } from '../view.ts'

/**
 * Every worker that has not ended, with what its evidence and its targets say. A process of no source that holds nothing
 * is left out: a server that only looks after the others, or one's own code between two runs.
 */
export async function rollCall(store: Store, now: Millis): Promise<WorkerView[]> {
  const views: WorkerView[] = []
  for (const witnessed of await store.workers()) {
    const held = await store.heldBy(witnessed.worker.id, null, HELD_MAX)
    if (witnessed.worker.source === '' && held.length === 0) continue
    views.push(workerView(witnessed, held, now))
  }
  return views
}
