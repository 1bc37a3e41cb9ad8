import type { Store } from '../store.ts'
import { TAKEN_UP } from './claims.ts'
import { sql, preferIndexes, type Database } from './database.ts'
import { LIVE } from './runs.ts'

/** Planned, and no target is open. */
const IS_OVER = /* sql */ `
  r.planned_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM unstuck.target t WHERE t.run_id = r.id AND t.status IN ('planned', 'in_progress'))
`
/** Work is left, but no worker holds it, and no live worker would claim it. */
const IS_LEFT_ALONE = /* sql */ `
  r.status = 'running'
    AND NOT EXISTS (SELECT FROM unstuck.target t WHERE t.run_id = r.id AND t.status = 'in_progress')
    AND (r.kind = 'single' OR $2 OR NOT EXISTS (
      SELECT FROM unstuck.worker w
       WHERE w.source = r.source AND w.ended_at IS NULL
         AND w.last_heartbeat_at >= clock_timestamp() - w.lease_ms * interval '1 millisecond'))
`
/** A claim that came in while the run was being marked as interrupted. */
const IS_TAKEN_UP = /* sql */ `
  r.status = 'interrupted'
    AND EXISTS (SELECT FROM unstuck.target t WHERE t.run_id = r.id AND t.status = 'in_progress')
`
const CANDIDATES = sql('settle:candidates')`
  SELECT r.id FROM unstuck.run r
   WHERE r.status IN ${LIVE} AND ($1::uuid IS NULL OR r.id = $1)
     AND ((${IS_OVER}) OR (${IS_LEFT_ALONE}) OR (${IS_TAKEN_UP}))
`
const LOCK = sql('settle:lock')`
  SELECT FROM unstuck.run WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE
`
const SETTLE = sql('settle')`
  WITH over AS (
    UPDATE unstuck.run r
       SET status = CASE WHEN bad.status IS NULL THEN 'succeeded' ELSE 'failed' END,
           error = bad.last_error, finished_at = clock_timestamp()
      FROM unnest($1::uuid[]) AS asked (id)
      LEFT JOIN LATERAL (
        SELECT t.status, t.last_error FROM unstuck.target t
         WHERE t.run_id = asked.id AND t.status IN ('failed', 'stuck', 'parked') LIMIT 1
      ) AS bad ON true
     WHERE r.id = asked.id AND r.status IN ${LIVE} AND ${IS_OVER}
    RETURNING r.id AS run, r.status
  ),
  left_alone AS (
    UPDATE unstuck.run r SET status = 'interrupted'
     WHERE r.id = ANY ($1::uuid[]) AND ${IS_LEFT_ALONE} AND NOT (${IS_OVER})
    RETURNING r.id AS run, r.status
  ),
  touched AS (
    -- The interruption is its last activity: the latest of its rows counts. One of no worker, if there is one.
    UPDATE unstuck.run_counters c SET last_activity_at = clock_timestamp()
      FROM left_alone
     WHERE c.run_id = left_alone.run
       AND (c.group_name, c.writer) = (
         SELECT group_name, writer FROM unstuck.run_counters
          WHERE run_id = left_alone.run ORDER BY writer, group_name LIMIT 1)
  ),
  taken_up AS (
    UPDATE unstuck.run r SET status = 'running', ${TAKEN_UP}
     WHERE r.id = ANY ($1::uuid[]) AND ${IS_TAKEN_UP}
    RETURNING r.id AS run, r.status
  )
  TABLE over UNION ALL TABLE left_alone UNION ALL TABLE taken_up
`

type Settled = Awaited<ReturnType<Store['settle']>>[number]

export function settleMethods(db: Database): Pick<Store, 'settle'> {
  return {
    settle: (run, lost = false) =>
      db.transaction('settle', async (connection) => {
        await preferIndexes(connection, 'settle')
        const open = await connection.all<{ id: string }>(CANDIDATES, [run ?? null, lost])
        if (open.length === 0) return []
        const ids = open.map((row) => row.id)
        // The rows may have changed: the decision is made under the lock, with a newer snapshot.
        await connection.all(LOCK, [ids])
        return connection.all<Settled>(SETTLE, [ids, lost])
      }),
  }
}
