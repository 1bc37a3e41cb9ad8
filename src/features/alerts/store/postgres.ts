import { DELETE_BATCH, deleteInBatches } from '../../../core/store/list-rows.ts'
import { ms, sql, stripNul, timestamp, type Database } from '../../../core/store/postgres/kit.ts'
import { ALERT_OWNER_TIMEOUT_MS, toAlert, type AlertRow, type AlertStore } from './store.ts'

const COLUMNS = /* sql */ `
  cause, owner, rule, source, run_id, because, command, ${ms('since')} AS since,
  ${ms('last_seen_at')} AS last_seen_at, ${ms('resolved_at')} AS resolved_at,
  (SELECT coalesce(jsonb_object_agg(t.destination, jsonb_build_object(
            'sentAt', ${ms('t.raised_sent_at')}, 'endedAt', ${ms('t.resolved_sent_at')})), '{}')
     FROM unstuck.alert_delivery t WHERE t.cause = alert.cause) AS deliveries
`
const OPEN = sql('alerts:open')`
  SELECT ${COLUMNS} FROM unstuck.alert WHERE resolved_at IS NULL ORDER BY alert.since, cause
`
const RESOLVED = sql('alerts:resolved')`
  SELECT ${COLUMNS} FROM unstuck.alert WHERE resolved_at IS NOT NULL ORDER BY alert.resolved_at DESC LIMIT $1
`
const STILL_OPEN = sql('alert:still')`
  UPDATE unstuck.alert
     SET because = $2, last_seen_at = clock_timestamp(),
         owner = CASE WHEN last_seen_at <= clock_timestamp() - $4 * interval '1 millisecond' THEN $3 ELSE owner END
   WHERE cause = $1 AND resolved_at IS NULL
  RETURNING cause
`
// Of several that raise it at once, one gets a row back.
const RAISE = sql('alert:raise')`
  INSERT INTO unstuck.alert (cause, owner, rule, source, run_id, because, command)
  VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT (cause) DO UPDATE SET
    owner = excluded.owner, rule = excluded.rule, source = excluded.source, run_id = excluded.run_id,
    because = excluded.because, command = excluded.command, since = excluded.since,
    last_seen_at = excluded.last_seen_at, resolved_at = NULL
   WHERE alert.resolved_at IS NOT NULL
  RETURNING cause
`
const SENT = sql('alert:sent')`
  INSERT INTO unstuck.alert_delivery (cause, destination, raised_sent_at)
  SELECT cause, $2, clock_timestamp() FROM unnest($1::text[]) AS cause
  ON CONFLICT (cause, destination) DO UPDATE SET raised_sent_at = excluded.raised_sent_at
`
const ENDED = sql('alert:ended')`
  INSERT INTO unstuck.alert_delivery (cause, destination, resolved_sent_at)
  SELECT cause, $2, clock_timestamp() FROM unnest($1::text[]) AS cause
  ON CONFLICT (cause, destination) DO UPDATE SET resolved_sent_at = excluded.resolved_sent_at
`
// Times are read in whole milliseconds, rounded down.
const RESOLVE = sql('alert:resolve')`
  UPDATE unstuck.alert SET resolved_at = clock_timestamp()
   WHERE cause = $1 AND resolved_at IS NULL AND owner = $2 AND last_seen_at < ${timestamp('$3')} + interval '1 millisecond'
  RETURNING cause
`

const REMOVE_ALERTS = sql('alert:remove')`
  WITH old AS (
    SELECT cause FROM unstuck.alert WHERE resolved_at < ${timestamp('$1')}
     ORDER BY resolved_at LIMIT $2 FOR UPDATE SKIP LOCKED
  ),
  gone AS (DELETE FROM unstuck.alert a USING old WHERE a.cause = old.cause RETURNING 1),
  deliveries AS (DELETE FROM unstuck.alert_delivery t USING old WHERE t.cause = old.cause)
  SELECT count(*)::int AS count FROM gone
`

export function alertMethods(db: Database): AlertStore {
  return {
    listAlerts: async (filter) => {
      const rows = filter.open
        ? await db.all<AlertRow>(OPEN)
        : await db.all<AlertRow>(RESOLVED, [filter.limit])
      return rows.map(toAlert)
    },
    raiseAlert: async (alert) => {
      const { owner, rule, source, run } = alert
      const [cause, because] = [stripNul(alert.cause), stripNul(alert.because)]
      const stillOpen = await db.all(STILL_OPEN, [cause, because, owner, ALERT_OWNER_TIMEOUT_MS])
      if (stillOpen.length > 0) return false
      const command = stripNul(alert.command)
      const raised = await db.all(RAISE, [cause, owner, rule, source, run, because, command])
      return raised.length > 0
    },
    // Sorted, so that two calls with the same causes do not deadlock.
    markDelivered: async ({ causes, destination, event }) => {
      const sorted = [...new Set(causes.map(stripNul))].sort()
      await db.all(event === 'sent' ? SENT : ENDED, [sorted, destination])
    },
    resolveAlert: async ({ cause, owner, lastSeenAt }) =>
      (await db.all(RESOLVE, [stripNul(cause), owner, lastSeenAt])).length > 0,
    pruneAlerts: (resolvedBefore) =>
      deleteInBatches(async () => {
        const values = [resolvedBefore, DELETE_BATCH]
        return (await db.all<{ count: number }>(REMOVE_ALERTS, values))[0]!.count
      }),
  }
}
