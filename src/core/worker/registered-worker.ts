import { unknownWorker } from '../model/errors.ts'
import type { WorkerId } from '../model/id.ts'
import { whenAvailable } from '../store/open.ts'
import type { Store } from '../store/store.ts'

/**
 * Throws when the database has lost this worker's own row. Asked before "nothing is left" or "another one has it" is
 * believed: tables that were emptied look the same.
 */
export async function assertKnown(
  store: Store,
  worker: WorkerId,
  giveUp?: AbortSignal,
): Promise<void> {
  if (!(await whenAvailable(() => store.worker(worker), giveUp))) throw unknownWorker(store.where)
}
