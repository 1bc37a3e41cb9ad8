import { targetColumns, toClaimed, type ClaimedRow } from '../rows.ts'
import type { ClaimId } from '../../model/id.ts'
import type { ClaimRequest, Store } from '../store.ts'
import { sql, type Database } from './database.ts'
import { MAY_CLAIM } from './may-claim.ts'
import { LIVE } from './runs.ts'
import { ADD_ON_CONFLICT } from './counters.ts'

export const CLAIM_COLUMNS = /* sql */ `
  ${targetColumns('t')}, t.next_url, t.cursor, t.data
`
/** What a run that has an owner again remembers of it. */
export const TAKEN_UP = /* sql */ `
  reopened_at = NULL,
  resumed_at  = CASE WHEN status = 'interrupted' THEN clock_timestamp() ELSE resumed_at END,
  resumes     = resumes + (status = 'interrupted')::int
`

// $1 writer, $2 worker, $3 source, $4 claim ids, $5 empty, $6 alone.
//
// What the worker already holds under these ids is returned again: the reply to an earlier call got lost. The picks
// walk an index in its order and skip what others are just claiming. The worker's row is written last, and only when
// there is something to claim: it cannot be retired meanwhile, its last heartbeat is recent, and the same call in another
// session, which this one cannot see yet, takes nothing. A crash is counted here and struck off when the claim ends any other way.
export const CLAIM = sql('claim')`
  WITH again AS (
    SELECT ${CLAIM_COLUMNS} FROM unstuck.target t
     WHERE t.worker_id = $2 AND t.status = 'in_progress' AND t.claim_id = ANY ($4::uuid[])
  ),
  wanted AS MATERIALIZED (
    SELECT id AS run_id FROM unstuck.run
     WHERE source = $3 AND kind = 'crawl' AND status IN ${LIVE} AND NOT EXISTS (SELECT FROM again)
       AND NOT EXISTS (SELECT FROM unstuck.source WHERE source = $3 AND paused_at IS NOT NULL)
  ),
  crashed AS (
    SELECT id, ready_at FROM unstuck.target
     WHERE run_id = (SELECT run_id FROM wanted) AND status = 'planned' AND crashes > 0
       AND (ready_at IS NULL OR ready_at <= statement_timestamp()) AND $5
     ORDER BY ready_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
  ),
  due AS (
    SELECT id, ready_at FROM unstuck.target
     WHERE run_id = (SELECT run_id FROM wanted) AND status = 'planned' AND crashes = 0
       AND ready_at <= statement_timestamp() AND NOT EXISTS (SELECT FROM crashed)
     ORDER BY ready_at, id LIMIT cardinality($4::uuid[]) FOR UPDATE SKIP LOCKED
  ),
  fresh AS (
    SELECT id, ready_at FROM unstuck.target
     WHERE run_id = (SELECT run_id FROM wanted) AND status = 'planned' AND crashes = 0
       AND ready_at IS NULL AND NOT EXISTS (SELECT FROM crashed)
     ORDER BY ready_at, id LIMIT cardinality($4::uuid[]) - (SELECT count(*) FROM due)
       FOR UPDATE SKIP LOCKED
  ),
  picked AS (
    SELECT array_agg(id ORDER BY ready_at, id) AS ids
      FROM (TABLE crashed UNION ALL TABLE due UNION ALL TABLE fresh) AS pick
  ),
  asker AS (
    UPDATE unstuck.worker SET asked = $4
     WHERE id = $2 AND ${MAY_CLAIM} AND NOT coalesce(asked && $4::uuid[], false)
       AND (SELECT ids FROM picked) IS NOT NULL
    RETURNING id
  ),
  claimed AS (
    UPDATE unstuck.target t
       SET status = 'in_progress', epoch = epoch + 1, worker_id = $2,
           claim_id = ($4::uuid[])[array_position((SELECT ids FROM picked), t.id)],
           claimed_at = clock_timestamp(), last_activity_at = clock_timestamp(),
           claimed_alone = $6 OR crashes > 0, attempts = attempts + 1, crashes = crashes + 1,
           crashes_alone = crashes_alone + ($6 OR crashes > 0)::int
     WHERE t.id = ANY ((SELECT ids FROM picked)::uuid[]) AND EXISTS (SELECT FROM asker)
    RETURNING ${CLAIM_COLUMNS}
  ),
  woken AS (
    UPDATE unstuck.run
       SET status = 'running', started_at = coalesce(started_at, clock_timestamp()), ${TAKEN_UP}
     WHERE id = (SELECT run_id FROM wanted) AND EXISTS (SELECT FROM claimed)
       AND (status IN ('queued', 'interrupted') OR (status = 'running' AND reopened_at IS NOT NULL))
  ),
  counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, planned, in_progress)
    SELECT run_id, group_name, $1, -count(*), count(*) FROM claimed GROUP BY run_id, group_name ORDER BY run_id, group_name
    ${ADD_ON_CONFLICT}
  )
  SELECT (SELECT ids FROM picked) IS NOT NULL AND NOT EXISTS (SELECT FROM asker) AS is_overtaken, answer.*
    FROM (SELECT) AS always LEFT JOIN (TABLE claimed UNION ALL TABLE again) AS answer ON true
`
const LOCK_WORKER = sql('claim:worker')`SELECT FROM unstuck.worker WHERE id = $1 FOR UPDATE`

type Row = { is_overtaken: boolean } & (ClaimedRow | { id: null })

export function claimMethods(db: Database): Pick<Store, 'claim'> {
  /** Ids of a call without a reply: the server may still be executing it. */
  let unsure: readonly ClaimId[] = []

  const claim = async (request: ClaimRequest): Promise<Row[]> => {
    const { worker, source, claimIds, isIdle, singleSlot } = request
    const values = [worker, source, claimIds, isIdle, singleSlot]
    if (!claimIds.some((id) => unsure.includes(id))) {
      const rows = await db.writeCounts<Row>(CLAIM, values)
      if (!rows.some((row) => row.is_overtaken)) return rows
    }
    // Behind the lock the other call is over, and seen; or it comes later and takes nothing.
    return db.transaction('claim', async (connection) => {
      await connection.all(LOCK_WORKER, [worker])
      return connection.writeCounts<Row>(CLAIM, values)
    })
  }

  return {
    claim: async (request) => {
      const { claimIds, source } = request
      if (claimIds.length === 0) return []
      try {
        const rows = (await claim(request)).filter((row) => row.id !== null)
        unsure = []
        const order = new Map(claimIds.map((id, n) => [id, n]))
        rows.sort((a, b) => order.get(a.claim_id)! - order.get(b.claim_id)!)
        return rows.map((row) => toClaimed(row, source))
      } catch (error) {
        unsure = claimIds
        throw error
      }
    },
  }
}
