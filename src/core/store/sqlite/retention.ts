import type { Store } from '../store.ts'
import { DELETE_BATCH, deleteInBatches } from '../list-rows.ts'
import { sql, type Database } from './database.ts'

/** Rows with stats stay: they are the sum of what all ended workers have measured. So do rows that something refers to. */
const REMOVE_WORKERS = sql(
  'worker:remove',
  /* sql */ `
  DELETE FROM worker WHERE id IN (
    SELECT w.id FROM worker w
     WHERE (w.ended_at < :endedBefore
            OR w.ended_at < :settledBefore AND w.id IN (
              SELECT id FROM worker WHERE ended_at IS NOT NULL
               ORDER BY ended_at DESC, id DESC LIMIT -1 OFFSET :keepNewest))
       AND w.stats IS NULL
       AND NOT EXISTS (SELECT 1 FROM target t WHERE t.worker_id = w.id AND t.status = 'in_progress')
       AND NOT EXISTS (SELECT 1 FROM source_lock g WHERE g.worker_id = w.id)
     LIMIT :limit)
`,
)
const OLD_ALERTS = sql(
  'alert:old',
  /* sql */ `
  SELECT cause FROM alert WHERE resolved_at < :resolvedBefore ORDER BY resolved_at LIMIT :limit
`,
)
const IN_CAUSES = `cause IN (SELECT value FROM json_each(:causes))`
const REMOVE_ALERTS = sql('alert:remove', `DELETE FROM alert WHERE ${IN_CAUSES}`)
const REMOVE_DELIVERIES = sql(
  'alert:remove-deliveries',
  `DELETE FROM alert_delivery WHERE ${IN_CAUSES}`,
)

type RetentionMethods = Pick<Store, 'removeEndedWorkers' | 'removeResolvedAlerts'>

export function retentionMethods(db: Database): RetentionMethods {
  return {
    removeEndedWorkers: (bounds) =>
      deleteInBatches(() =>
        db.write('worker:remove', (tx) =>
          tx.run(REMOVE_WORKERS, { ...bounds, limit: DELETE_BATCH }),
        ),
      ),

    removeResolvedAlerts: (resolvedBefore) =>
      deleteInBatches(() =>
        db.write('alert:remove', (tx) => {
          const old = tx.all<{ cause: string }>(OLD_ALERTS, {
            resolvedBefore,
            limit: DELETE_BATCH,
          })
          const causes = JSON.stringify(old.map(({ cause }) => cause))
          tx.run(REMOVE_DELIVERIES, { causes })
          return tx.run(REMOVE_ALERTS, { causes })
        }),
      ),
  }
}
