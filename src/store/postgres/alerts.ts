import type { Store } from '../store.ts'
import { toAlert, type AlertRow } from '../watching-rows.ts'
import { moment, ms, sql, type Database } from './database.ts'
import { storable } from './storable.ts'

const COLUMNS = /* sql */ `
  cause, rule, source, run_id, because, command, ${ms('since')} AS since,
  ${ms('last_seen_at')} AS last_seen_at, ${ms('last_sent_at')} AS last_sent_at,
  ${ms('resolved_at')} AS resolved_at
`
const OPEN = sql(
  'alerts:open',
  `SELECT ${COLUMNS} FROM unstuck.alert WHERE resolved_at IS NULL ORDER BY alert.since, cause`,
)
const RESOLVED = sql(
  'alerts:resolved',
  /* sql */ `
  SELECT ${COLUMNS} FROM unstuck.alert WHERE resolved_at IS NOT NULL ORDER BY alert.resolved_at DESC LIMIT $1
`,
)
const STILL_OPEN = sql(
  'alert:still',
  /* sql */ `
  UPDATE unstuck.alert SET because = $2, last_seen_at = clock_timestamp()
   WHERE cause = $1 AND resolved_at IS NULL
  RETURNING cause
`,
)
// Of all that raise it at once, one gets a row back.
const RAISE = sql(
  'alert:raise',
  /* sql */ `
  INSERT INTO unstuck.alert (cause, rule, source, run_id, because, command)
  VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (cause) DO UPDATE SET
    rule = excluded.rule, source = excluded.source, run_id = excluded.run_id, because = excluded.because,
    command = excluded.command, since = excluded.since, last_seen_at = excluded.last_seen_at,
    last_sent_at = NULL, resolved_at = NULL
   WHERE alert.resolved_at IS NOT NULL
  RETURNING cause
`,
)
const SENT = sql(
  'alert:sent',
  `UPDATE unstuck.alert SET last_sent_at = ${moment('$2')} WHERE cause = $1`,
)
const RESOLVE = sql(
  'alert:resolve',
  /* sql */ `
  UPDATE unstuck.alert SET resolved_at = clock_timestamp() WHERE cause = $1 AND resolved_at IS NULL
  RETURNING cause
`,
)

type AlertVerbs = Pick<
  Store,
  'openAlerts' | 'recentAlerts' | 'raiseAlert' | 'markSent' | 'resolveAlert'
>

export function alertVerbs(db: Database): AlertVerbs {
  return {
    openAlerts: async () => (await db.all<AlertRow>(OPEN)).map(toAlert),
    recentAlerts: async (limit) => (await db.all<AlertRow>(RESOLVED, [limit])).map(toAlert),
    raiseAlert: async (alert) => {
      const [cause, because] = [storable(alert.cause), storable(alert.because)]
      const stillOpen = await db.all(STILL_OPEN, [cause, because])
      if (stillOpen.length > 0) return false
      const { rule, source, run, command } = alert
      const raised = await db.all(RAISE, [cause, rule, source, run, because, storable(command)])
      return raised.length > 0
    },
    markSent: async (cause, at) => void (await db.all(SENT, [storable(cause), at])),
    resolveAlert: async (cause) => (await db.all(RESOLVE, [storable(cause)])).length > 0,
  }
}
