import { LeaseLost } from '../../model/errors.ts'
import type { Claim } from '../../model/claim.ts'
import { shortId } from '../../model/id.ts'
import type { TargetStatus } from '../../model/target.ts'
import { sql, type Connection } from './database.ts'
import { book } from './counters.ts'

export type Standing = {
  run_id: string
  grp: string
  status: TargetStatus
  epoch: number
  claim_id: string | null
  worker_id: string | null
  seq: number
  page: number
  page_hash: string | null
}

const STANDING = sql(
  'refused:look',
  /* sql */ `
  SELECT run_id, grp, status, epoch, claim_id, worker_id, seq, page, page_hash
    FROM target WHERE id = :target
`,
)

/** Where a target stands, for a write that the fence turned away. */
export function standing(tx: Connection, claim: Claim): Standing | undefined {
  return tx.get<Standing>(STANDING, { target: claim.target })
}

export function isSameClaim(row: Standing, claim: Claim): boolean {
  return row.epoch === claim.epoch && row.claim_id === claim.claimId
}

/** Enters a refused write into the books and says why it was refused. */
export function refuse(tx: Connection, claim: Claim, row: Standing | undefined): LeaseLost {
  if (!row) return new LeaseLost(claim, 'there is no such target')
  book(tx, row.run_id, row.grp, { refused: 1 }, tx.now())
  if (row.status === 'in_progress') {
    return new LeaseLost(claim, `worker ${shortId(row.worker_id!)} has it now (epoch ${row.epoch})`)
  }
  return new LeaseLost(claim, `it was taken back and is ${row.status}`)
}
