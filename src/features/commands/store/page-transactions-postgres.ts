import { StoreUnavailableError } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import {
  isPageIn,
  isSameClaim,
  leaseLost,
  type ClaimState,
} from '../../../core/store/claim-state.ts'
import {
  checkpointRow,
  codeOf,
  itemJson,
  sql,
  type Connection,
  type Database,
} from '../../../core/store/postgres/kit.ts'
import type { PageIdentity, PageTransactions } from './page-transactions.ts'

/** The function is made by the migration `checkpoint-function`. */
const STATEMENT = 'SELECT unstuck.checkpoint($1)'
const LOCK_NOT_AVAILABLE = '55P03'
const WAIT = `SET LOCAL lock_timeout = '5s'`
// Waits for the transaction that has saved the page and has not ended.
const STATE = sql('page-transaction:state')`
  SELECT status, epoch, claim_id, worker_id, checkpoint_seq, page, checkpoint_hash
    FROM unstuck.target WHERE id = $1 FOR UPDATE
`

export function pageTransactionMethods(db: Database): PageTransactions {
  return {
    checkpointCall: (page) => {
      const items = page.items.map(itemJson).join(',')
      const row = JSON.stringify(checkpointRow(page))
      return { statement: STATEMENT, parameter: `${row.slice(0, -1)},"items":[${items}]}` }
    },

    isSaved: (page) =>
      db.userTransaction('page-transaction', async (connection) => {
        const state = await settledState(connection, page)
        if (state && isPageIn(page, state)) return true
        const isHeld = state?.status === 'in_progress' && isSameClaim(state, page.claim)
        if (!isHeld) throw leaseLost(page.claim, state)
        return false
      }),
  }
}

async function settledState(
  connection: Connection,
  { claim }: PageIdentity,
): Promise<ClaimState | undefined> {
  await connection.exec('page-transaction:wait', WAIT)
  try {
    return (await connection.all<ClaimState>(STATE, [claim.target]))[0]
  } catch (error) {
    if (codeOf(error) !== LOCK_NOT_AVAILABLE) throw error
    throw new StoreUnavailableError(
      `The transaction on target ${shortId(claim.target)} has not ended: commit it or roll it back, then ask again.`,
      { cause: error },
    )
  }
}
