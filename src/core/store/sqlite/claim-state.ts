import type { LeaseLostError } from '../../model/errors.ts'
import type { Claim } from '../../model/claim.ts'
import { leaseLost, type ClaimState } from '../claim-state.ts'
import { addCounts } from './counters.ts'
import { sql, type Connection } from './database.ts'

type ClaimStateRow = ClaimState & { run_id: string; group_name: string }

const CLAIM_STATE = sql('refused:read')`
  SELECT run_id, group_name, status, epoch, claim_id, worker_id, checkpoint_seq, page, checkpoint_hash
    FROM target WHERE id = :target
`

/** Returns the state of the target of a write that the fence refused. */
export function claimState(tx: Connection, claim: Claim): ClaimStateRow | undefined {
  return tx.get<ClaimStateRow>(CLAIM_STATE, { target: claim.target })
}

/** Counts a refused write. Returns why it was refused. */
export function refuseWrite(
  tx: Connection,
  claim: Claim,
  state: ClaimStateRow | undefined,
): LeaseLostError {
  if (state) addCounts(tx, state.run_id, state.group_name, { refused: 1 }, tx.now())
  return leaseLost(claim, state)
}
