import type { Claim } from '../../model/claim.ts'
import { LeaseLostError } from '../../model/errors.ts'
import { shortId, type TargetId } from '../../model/id.ts'
import type { TargetStatus } from '../../model/target.ts'
import { sql, type Queryable } from './database.ts'
import { ADD_ON_CONFLICT } from './counters.ts'

export type ClaimState = {
  id: TargetId
  status: TargetStatus
  epoch: number
  claim_id: string | null
  worker_id: string | null
  checkpoint_seq: number
  page: number
  checkpoint_hash: string | null
  last_error: string | null
}

const CLAIM_STATE = sql('refused:read')`
  SELECT id, status, epoch, claim_id, worker_id, checkpoint_seq, page, checkpoint_hash, last_error
    FROM unstuck.target WHERE id = ANY ($1::uuid[])
`
const COUNT = sql('refused:count')`
  INSERT INTO unstuck.run_counters (run_id, group_name, writer, refused)
  SELECT t.run_id, t.group_name, $1, count(*)
    FROM unnest($2::uuid[]) AS refused (id) JOIN unstuck.target t USING (id)
   GROUP BY t.run_id, t.group_name ORDER BY t.run_id, t.group_name
  ${ADD_ON_CONFLICT}
`

/** Where targets stand, for writes that the fence turned away. */
export async function claimStates(
  db: Queryable,
  claims: readonly Claim[],
): Promise<Map<TargetId, ClaimState>> {
  const rows = await db.all<ClaimState>(CLAIM_STATE, [claims.map((claim) => claim.target)])
  return new Map(rows.map((row) => [row.id, row]))
}

export function isSameClaim(standing: ClaimState, claim: Claim): boolean {
  return standing.epoch === claim.epoch && standing.claim_id === claim.claimId
}

/** Enters refused writes into the books. */
export async function countRefused(db: Queryable, claims: readonly Claim[]): Promise<void> {
  if (claims.length > 0) await db.writeCounts(COUNT, [claims.map((claim) => claim.target)])
}

/** Why a write was refused. */
export function leaseLost(claim: Claim, standing: ClaimState | undefined): LeaseLostError {
  if (!standing) return new LeaseLostError(claim, 'there is no such target')
  const { status, epoch, checkpoint_seq: seq, worker_id: worker } = standing
  if (status !== 'in_progress')
    return new LeaseLostError(claim, `it was taken back and is ${status}`)
  if (isSameClaim(standing, claim)) {
    return new LeaseLostError(
      claim,
      `it stands at checkpoint ${seq}, which this write does not follow`,
    )
  }
  return new LeaseLostError(claim, `worker ${shortId(worker!)} has it now (epoch ${epoch})`)
}
