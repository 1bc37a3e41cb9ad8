import type { ClaimId, RunId, TargetId, WorkerId } from './id.ts'
import type { Cursor } from './target.ts'

/**
 * The right to write to a target. Every write repeats all of it. The epoch only grows; the claim id
 * is random, so that two owners stay apart even when a restored backup took the epoch back.
 */
export type Claim = {
  readonly target: TargetId
  readonly epoch: number
  readonly claimId: ClaimId
  readonly worker: WorkerId
}

/** A claim just made, with what its holder needs to continue. */
export type ClaimedTarget = Claim &
  Cursor & {
    readonly run: RunId
    readonly source: string
    readonly key: string
    readonly group: string | null
    readonly url: string | null
    /** As planned; null if it has none. */
    readonly data: unknown
    readonly errors: number
    /** It took a worker down since its last page: its holder takes nothing else beside it. */
    readonly crashedBefore: boolean
  }

/** Returns the claim alone, as a write repeats it. */
export function claimOf({ target, epoch, claimId, worker }: Claim): Claim {
  return { target, epoch, claimId, worker }
}

/** What became of a fenced write. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: Error }
