import { unknownWorker } from '../model/errors.ts'
import type { WorkerId } from '../model/id.ts'
import { withRetry } from '../store/open.ts'
import type { Store } from '../store/store.ts'

/**
 * Throws if the database has lost the row of this worker. Call it before concluding that no work is left or that another
 * process has it: emptied tables look the same.
 */
export async function assertWorkerExists(
  store: Store,
  worker: WorkerId,
  signal?: AbortSignal,
): Promise<void> {
  if (!(await withRetry(() => store.worker(worker), signal))) throw unknownWorker(store.location)
}
