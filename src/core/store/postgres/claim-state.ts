import type { Claim } from '../../model/claim.ts'
import type { TargetId } from '../../model/id.ts'
import type { ClaimState } from '../claim-state.ts'
import { sql, type Queryable } from './database.ts'
import { ADD_ON_CONFLICT } from './counters.ts'

export type ClaimStateRow = ClaimState & { id: TargetId; last_error: string | null }

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

/** Returns where the targets of writes stand that the fence refused. */
export async function claimStates(
  db: Queryable,
  claims: readonly Claim[],
): Promise<Map<TargetId, ClaimStateRow>> {
  const rows = await db.all<ClaimStateRow>(CLAIM_STATE, [claims.map((claim) => claim.target)])
  return new Map(rows.map((row) => [row.id, row]))
}

/** Counts refused writes. */
export async function countRefused(db: Queryable, claims: readonly Claim[]): Promise<void> {
  if (claims.length > 0) await db.writeCounts(COUNT, [claims.map((claim) => claim.target)])
}
