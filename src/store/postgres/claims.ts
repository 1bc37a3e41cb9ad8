import type { Claimed } from '../../model/claim.ts'
import type { Store } from '../store.ts'
import { sql, type Database } from './database.ts'
import { LIVE } from './runs.ts'
import { ADD_UP } from './tally.ts'

export const CLAIM_COLUMNS = /* sql */ `
  t.id, t.run_id, t.key, t.grp, t.url, t.epoch, t.claim_id, t.worker_id, t.seq, t.page, t.page_target,
  t.next_url, t.last_item_id, t.cursor, t.errors, t.crashes
`

// $1 writer, $2 worker, $3 source, $4 claim ids, $5 empty, $6 alone.
//
// The worker's row is locked, so that it cannot be retired while it claims. What it already holds under these ids
// is answered again: the answer of an earlier call got lost. The picks walk an index in its order and skip what
// others are just claiming. A crash is counted here and struck off when the claim ends any other way.
export const CLAIM = sql(
  'claim',
  /* sql */ `
  WITH asker AS (
    SELECT id FROM unstuck.worker WHERE id = $2 AND ended_at IS NULL FOR SHARE
  ),
  live AS (
    SELECT id FROM unstuck.run WHERE source = $3 AND kind = 'crawl' AND status IN ${LIVE}
  ),
  again AS (
    SELECT ${CLAIM_COLUMNS} FROM unstuck.target t
     WHERE t.worker_id = $2 AND t.status = 'in_progress' AND t.claim_id = ANY ($4::uuid[])
  ),
  wanted AS MATERIALIZED (
    SELECT id AS run_id FROM live WHERE EXISTS (SELECT FROM asker) AND NOT EXISTS (SELECT FROM again)
  ),
  suspect AS (
    SELECT id, ready_at FROM unstuck.target
     WHERE run_id = (SELECT run_id FROM wanted) AND status = 'planned' AND crashes > 0
       AND (ready_at IS NULL OR ready_at <= statement_timestamp()) AND $5
     ORDER BY ready_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
  ),
  due AS (
    SELECT id, ready_at FROM unstuck.target
     WHERE run_id = (SELECT run_id FROM wanted) AND status = 'planned' AND crashes = 0
       AND ready_at <= statement_timestamp() AND NOT EXISTS (SELECT FROM suspect)
     ORDER BY ready_at, id LIMIT cardinality($4::uuid[]) FOR UPDATE SKIP LOCKED
  ),
  fresh AS (
    SELECT id, ready_at FROM unstuck.target
     WHERE run_id = (SELECT run_id FROM wanted) AND status = 'planned' AND crashes = 0
       AND ready_at IS NULL AND NOT EXISTS (SELECT FROM suspect)
     ORDER BY ready_at, id LIMIT cardinality($4::uuid[]) - (SELECT count(*) FROM due)
       FOR UPDATE SKIP LOCKED
  ),
  picked AS (
    SELECT array_agg(id ORDER BY ready_at, id) AS ids
      FROM (TABLE suspect UNION ALL TABLE due UNION ALL TABLE fresh) AS pick
  ),
  claimed AS (
    UPDATE unstuck.target t
       SET status = 'in_progress', epoch = epoch + 1, worker_id = $2,
           claim_id = ($4::uuid[])[array_position((SELECT ids FROM picked), t.id)],
           claimed_at = clock_timestamp(), last_activity_at = clock_timestamp(), ready_at = NULL,
           alone = $6 OR crashes > 0, attempts = attempts + 1, crashes = crashes + 1,
           crashes_alone = crashes_alone + ($6 OR crashes > 0)::int
     WHERE t.id = ANY ((SELECT ids FROM picked)::uuid[])
    RETURNING ${CLAIM_COLUMNS}
  ),
  woken AS (
    UPDATE unstuck.run
       SET status = 'running', started_at = coalesce(started_at, clock_timestamp()),
           resumes = resumes + (status = 'interrupted')::int
     WHERE id = (SELECT run_id FROM wanted) AND status IN ('queued', 'interrupted')
       AND EXISTS (SELECT FROM claimed)
  ),
  booked AS (
    INSERT INTO unstuck.tally (run_id, grp, writer, planned, in_progress)
    SELECT run_id, grp, $1, -count(*), count(*) FROM claimed GROUP BY run_id, grp ORDER BY run_id, grp
    ${ADD_UP}
  )
  TABLE claimed UNION ALL TABLE again
`,
)

export function claimVerbs(db: Database): Pick<Store, 'claim'> {
  return {
    claim: async ({ worker, source, claimIds, empty, alone }) => {
      if (claimIds.length === 0) return []
      const rows = await db.book<ClaimedRow>(CLAIM, [worker, source, claimIds, empty, alone])
      const order = new Map(claimIds.map((id, n) => [id, n]))
      rows.sort((a, b) => order.get(a.claim_id)! - order.get(b.claim_id)!)
      return rows.map((row) => toClaimed(row, source))
    },
  }
}

export type ClaimedRow = {
  id: string
  run_id: string
  key: string
  grp: string
  url: string | null
  epoch: number
  claim_id: string
  worker_id: string
  seq: number
  page: number
  page_target: number | null
  next_url: string | null
  last_item_id: string | null
  cursor: unknown
  errors: number
  crashes: number
}

export function toClaimed(row: ClaimedRow, source: string): Claimed {
  return {
    target: row.id,
    epoch: row.epoch,
    claimId: row.claim_id,
    worker: row.worker_id,
    run: row.run_id,
    source,
    key: row.key,
    group: row.grp === '' ? null : row.grp,
    url: row.url,
    seq: row.seq,
    page: row.page,
    pageTarget: row.page_target,
    next: row.next_url,
    lastItemId: row.last_item_id,
    cursor: row.cursor,
    errors: row.errors,
    // This claim's own crash is counted already.
    suspect: row.crashes > 1,
  }
}
