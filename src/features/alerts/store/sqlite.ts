import { DELETE_BATCH, deleteInBatches } from '../../../core/store/list-rows.ts'
import { sql, type Database } from '../../../core/store/sqlite/kit.ts'
import { ALERT_OWNER_TIMEOUT_MS, toAlert, type AlertRow, type AlertStore } from './store.ts'

const COLUMNS = /* sql */ `
  alert.*, (SELECT json_group_object(destination, json_object('sentAt', raised_sent_at, 'endedAt', resolved_sent_at))
              FROM alert_delivery t WHERE t.cause = alert.cause) AS deliveries
`
const OPEN = sql('alerts:open')`
  SELECT ${COLUMNS} FROM alert WHERE resolved_at IS NULL ORDER BY since, cause
`
const RESOLVED = sql('alerts:resolved')`
  SELECT ${COLUMNS} FROM alert WHERE resolved_at IS NOT NULL ORDER BY resolved_at DESC LIMIT :limit
`
const STILL_OPEN = sql('alert:still')`
  UPDATE alert
     SET because = :because, last_seen_at = :now,
         owner = iif(last_seen_at <= :gone, :owner, owner)
   WHERE cause = :cause AND resolved_at IS NULL
`
const RAISE = sql('alert:raise')`
  INSERT INTO alert (cause, owner, rule, source, run_id, because, command, since, last_seen_at)
  VALUES (:cause, :owner, :rule, :source, :run, :because, :command, :now, :now)
  ON CONFLICT (cause) DO UPDATE SET
    owner = excluded.owner, rule = excluded.rule, source = excluded.source, run_id = excluded.run_id,
    because = excluded.because, command = excluded.command, since = excluded.since,
    last_seen_at = excluded.last_seen_at, resolved_at = NULL
`
const SENT = sql('alert:sent')`
  INSERT INTO alert_delivery (cause, destination, raised_sent_at) SELECT value, :destination, :now FROM json_each(:causes) WHERE 1
  ON CONFLICT DO UPDATE SET raised_sent_at = excluded.raised_sent_at
`
const ENDED = sql('alert:ended')`
  INSERT INTO alert_delivery (cause, destination, resolved_sent_at) SELECT value, :destination, :now FROM json_each(:causes) WHERE 1
  ON CONFLICT DO UPDATE SET resolved_sent_at = excluded.resolved_sent_at
`
const RESOLVE = sql('alert:resolve')`
  UPDATE alert SET resolved_at = :now
   WHERE cause = :cause AND resolved_at IS NULL AND owner = :owner AND last_seen_at <= :lastSeenAt
`

const OLD_ALERTS = sql('alert:old')`
  SELECT cause FROM alert WHERE resolved_at < :resolvedBefore ORDER BY resolved_at LIMIT :limit
`
const IN_CAUSES = `cause IN (SELECT value FROM json_each(:causes))`
const REMOVE_ALERTS = sql('alert:remove')`DELETE FROM alert WHERE ${IN_CAUSES}`
const REMOVE_DELIVERIES = sql('alert:remove-deliveries')`
  DELETE FROM alert_delivery WHERE ${IN_CAUSES}
`

export function alertMethods(db: Database): AlertStore {
  return {
    listAlerts: async (filter) =>
      db
        .read((tx) =>
          filter.open
            ? tx.all<AlertRow>(OPEN)
            : tx.all<AlertRow>(RESOLVED, { limit: filter.limit }),
        )
        .map(toAlert),
    raiseAlert: ({ cause, owner, rule, source, run, because, command }) =>
      db.write('alert:raise', (tx) => {
        const now = tx.now()
        const seen = { cause, owner, because, now }
        if (tx.run(STILL_OPEN, { ...seen, gone: now - ALERT_OWNER_TIMEOUT_MS }) > 0) return false
        tx.run(RAISE, { ...seen, rule, source, run, command })
        return true
      }),
    markDelivered: ({ causes, destination, event }) =>
      db.write('alert:delivered', (tx) => {
        const delivery = { causes: JSON.stringify(causes), destination, now: tx.now() }
        tx.run(event === 'sent' ? SENT : ENDED, delivery)
      }),
    resolveAlert: ({ cause, owner, lastSeenAt }) =>
      db.write('alert:resolve', (tx) => {
        const believed = { cause, owner, lastSeenAt }
        return tx.run(RESOLVE, { ...believed, now: tx.now() }) > 0
      }),
    pruneAlerts: (resolvedBefore) =>
      deleteInBatches(() =>
        db.write('alert:remove', (tx) => {
          const old = tx.all<{ cause: string }>(OLD_ALERTS, { resolvedBefore, limit: DELETE_BATCH })
          const causes = JSON.stringify(old.map(({ cause }) => cause))
          tx.run(REMOVE_DELIVERIES, { causes })
          return tx.run(REMOVE_ALERTS, { causes })
        }),
      ),
  }
}
