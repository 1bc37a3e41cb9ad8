import { LeaseLostError } from '../../model/errors.ts'
import type { Claim } from '../../model/claim.ts'
import { shortId } from '../../model/id.ts'
import type { TargetStatus } from '../../model/target.ts'
import { sql, type Connection } from './database.ts'
import { addCounts } from './counters.ts'

export type ClaimState = {
  run_id: string
  group_name: string
  status: TargetStatus
  epoch: number
  claim_id: string | null
  worker_id: string | null
  checkpoint_seq: number
  page: number
  checkpoint_hash: string | null
}

const CLAIM_STATE = sql('refused:read')`
  SELECT run_id, group_name, status, epoch, claim_id, worker_id, checkpoint_seq, page, checkpoint_hash
    FROM target WHERE id = :target
`

/** Where a target stands, for a write that the fence turned away. */
export function claimState(tx: Connection, claim: Claim): ClaimState | undefined {
  return tx.get<ClaimState>(CLAIM_STATE, { target: claim.target })
}

export function isSameClaim(row: ClaimState, claim: Claim): boolean {
  return row.epoch === claim.epoch && row.claim_id === claim.claimId
}

/** Enters a refused write into the books and says why it was refused. */
export function refuseWrite(
  tx: Connection,
  claim: Claim,
  row: ClaimState | undefined,
): LeaseLostError {
  if (!row) return new LeaseLostError(claim, 'there is no such target')
  addCounts(tx, row.run_id, row.group_name, { refused: 1 }, tx.now())
  if (row.status === 'in_progress') {
    return new LeaseLostError(
      claim,
      `worker ${shortId(row.worker_id!)} has it now (epoch ${row.epoch})`,
    )
  }
  return new LeaseLostError(claim, `it was taken back and is ${row.status}`)
}
