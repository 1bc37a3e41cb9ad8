import type { Checkpoint } from '../model/checkpoint.ts'
import type { Claim, Outcome } from '../model/claim.ts'
import { LeaseLostError, PageBehindError } from '../model/errors.ts'
import { shortId } from '../model/id.ts'
import type { TargetStatus } from '../model/target.ts'

/** The state of a target whose write the fence has refused. */
export type ClaimState = {
  status: TargetStatus
  epoch: number
  claim_id: string | null
  worker_id: string | null
  checkpoint_seq: number
  page: number
  checkpoint_hash: string | null
}

export function isSameClaim(state: ClaimState, claim: Claim): boolean {
  return state.epoch === claim.epoch && state.claim_id === claim.claimId
}

/** Returns why a write was refused. */
export function leaseLost(claim: Claim, state: ClaimState | undefined): LeaseLostError {
  if (!state) return new LeaseLostError(claim, 'there is no such target')
  const { status, epoch, checkpoint_seq: seq, worker_id: worker } = state
  if (status !== 'in_progress')
    return new LeaseLostError(claim, `the claim was revoked, and it is ${status}`)
  if (isSameClaim(state, claim)) {
    const why = `it is at checkpoint ${seq}, which this write does not follow`
    return new LeaseLostError(claim, why)
  }
  return new LeaseLostError(claim, `worker ${shortId(worker!)} has it now (epoch ${epoch})`)
}

/** Returns true if the page is in: its last COMMIT had succeeded. */
export function isPageIn(
  { claim, expectedSeq, hash }: Pick<Checkpoint, 'claim' | 'expectedSeq' | 'hash'>,
  state: ClaimState,
): boolean {
  const isNext = state.checkpoint_seq === expectedSeq + 1
  return isSameClaim(state, claim) && isNext && state.checkpoint_hash === hash
}

/** Returns the outcome of a page that the fence refused: it was saved before, is behind the cursor, or its claim is lost. */
export function outcomeOfRefused(
  checkpoint: Checkpoint,
  state: ClaimState | undefined,
): Outcome<{ seq: number }> {
  const { claim, page } = checkpoint
  if (state && isSameClaim(state, claim)) {
    // The COMMIT whose reply got lost had succeeded.
    if (isPageIn(checkpoint, state)) return { ok: true, value: { seq: state.checkpoint_seq } }
    if (state.status === 'in_progress' && state.page >= page)
      return { ok: false, error: new PageBehindError(claim.target, page, state.page) }
  }
  return { ok: false, error: leaseLost(claim, state) }
}

export function isLeaseLost(outcome: Outcome<unknown>): boolean {
  return !outcome.ok && outcome.error instanceof LeaseLostError
}
