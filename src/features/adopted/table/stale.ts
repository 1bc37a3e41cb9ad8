import { RefusedError, StoreUnavailableError } from '../../../core/model/errors.ts'

/** Whether a failure may come of what the catalogue said once: one that is away, or says no, is what it was. */
export function mayBeStale(error: unknown): boolean {
  return !(error instanceof StoreUnavailableError || error instanceof RefusedError)
}
