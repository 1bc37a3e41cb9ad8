import type { Store } from '../store.ts'
import { DELETE_BATCH, deleteInBatches } from '../list-rows.ts'
import { timestamp, sql, type Database } from './database.ts'
import { foldCounters } from './counters.ts'

/** A statement that was under way when its worker was retired may have counted after the fold. */
const UNFOLDED = sql(
  'worker:unfolded',
  /* sql */ `
  SELECT w.id::text FROM unstuck.worker w
   WHERE w.ended_at < ${timestamp('$1')}
     AND EXISTS (SELECT FROM unstuck.run_counters t WHERE t.writer >= w.id || '/' AND t.writer < w.id || '0')
`,
)
// $1 ended before, $2 settled before, $3 how many of the newest are kept, $4 how many at once. Rows with stats stay: they
// are the sum of what all ended workers have measured. So do rows that something refers to, and one that just beats again.
const REMOVE_WORKERS = sql(
  'worker:remove',
  /* sql */ `
  WITH old AS (
    SELECT w.id FROM unstuck.worker w
     WHERE (w.ended_at < ${timestamp('$1')}
            OR w.ended_at < ${timestamp('$2')} AND w.id IN (
              SELECT id FROM unstuck.worker WHERE ended_at IS NOT NULL
               ORDER BY ended_at DESC, id DESC OFFSET $3))
       AND w.stats IS NULL
       AND NOT EXISTS (SELECT FROM unstuck.target t WHERE t.worker_id = w.id AND t.status = 'in_progress')
       AND NOT EXISTS (SELECT FROM unstuck.source_lock g WHERE g.worker_id = w.id)
     LIMIT $4 FOR UPDATE SKIP LOCKED
  ),
  gone AS (DELETE FROM unstuck.worker w USING old WHERE w.id = old.id RETURNING 1)
  SELECT count(*)::int AS count FROM gone
`,
)
const REMOVE_ALERTS = sql(
  'alert:remove',
  /* sql */ `
  WITH old AS (
    SELECT cause FROM unstuck.alert WHERE resolved_at < ${timestamp('$1')}
     ORDER BY resolved_at LIMIT $2 FOR UPDATE SKIP LOCKED
  ),
  gone AS (DELETE FROM unstuck.alert a USING old WHERE a.cause = old.cause RETURNING 1),
  deliveries AS (DELETE FROM unstuck.alert_delivery t USING old WHERE t.cause = old.cause)
  SELECT count(*)::int AS count FROM gone
`,
)

type RetentionMethods = Pick<Store, 'removeEndedWorkers' | 'removeResolvedAlerts'>

export function retentionMethods(db: Database): RetentionMethods {
  const removed = async (statement: typeof REMOVE_WORKERS, values: unknown[]): Promise<number> =>
    (await db.all<{ count: number }>(statement, [...values, DELETE_BATCH]))[0]!.count

  return {
    removeEndedWorkers: async ({ endedBefore, settledBefore, keepNewest }) => {
      for (const { id } of await db.all<{ id: string }>(UNFOLDED, [settledBefore])) {
        await db.transaction('worker:fold', (connection) => foldCounters(connection, id))
      }
      return deleteInBatches(() =>
        removed(REMOVE_WORKERS, [endedBefore, settledBefore, keepNewest]),
      )
    },

    removeResolvedAlerts: (resolvedBefore) =>
      deleteInBatches(() => removed(REMOVE_ALERTS, [resolvedBefore])),
  }
}
