import { unknownWorker } from '../model/errors.ts'
import type { WorkerId } from '../model/id.ts'
import { withRetry } from '../store/open.ts'
import type { Store } from '../store/store.ts'

/**
 * Throws when the database has lost this worker's own row. Asked before "nothing is left" or "another one has it" is
 * believed: tables that were emptied look the same.
 */
export async function assertWorkerExists(
  store: Store,
  worker: WorkerId,
  signal?: AbortSignal,
): Promise<void> {
  if (!(await withRetry(() => store.worker(worker), signal))) throw unknownWorker(store.location)
}
