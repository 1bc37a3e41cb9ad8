import type { Store } from '../store.ts'
import { toAlert, type AlertRow } from '../watching-rows.ts'
import { sql, type Database } from './database.ts'

const OPEN = sql(
  'alerts:open',
  `SELECT * FROM alert WHERE resolved_at IS NULL ORDER BY since, cause`,
)
const RESOLVED = sql(
  'alerts:resolved',
  /* sql */ `
  SELECT * FROM alert WHERE resolved_at IS NOT NULL ORDER BY resolved_at DESC LIMIT :limit
`,
)
const STILL_OPEN = sql(
  'alert:still',
  /* sql */ `
  UPDATE alert SET because = :because, last_seen_at = :now WHERE cause = :cause AND resolved_at IS NULL
`,
)
const RAISE = sql(
  'alert:raise',
  /* sql */ `
  INSERT INTO alert (cause, rule, source, run_id, because, command, since, last_seen_at)
  VALUES (:cause, :rule, :source, :run, :because, :command, :now, :now)
  ON CONFLICT (cause) DO UPDATE SET
    rule = excluded.rule, source = excluded.source, run_id = excluded.run_id, because = excluded.because,
    command = excluded.command, since = excluded.since, last_seen_at = excluded.last_seen_at,
    last_sent_at = NULL, resolved_at = NULL
`,
)
const SENT = sql('alert:sent', `UPDATE alert SET last_sent_at = :at WHERE cause = :cause`)
const RESOLVE = sql(
  'alert:resolve',
  `UPDATE alert SET resolved_at = :now WHERE cause = :cause AND resolved_at IS NULL`,
)

type AlertVerbs = Pick<
  Store,
  'openAlerts' | 'recentAlerts' | 'raiseAlert' | 'markSent' | 'resolveAlert'
>

export function alertVerbs(db: Database): AlertVerbs {
  return {
    openAlerts: async () => db.read((tx) => tx.all<AlertRow>(OPEN)).map(toAlert),
    recentAlerts: async (limit) =>
      db.read((tx) => tx.all<AlertRow>(RESOLVED, { limit })).map(toAlert),
    raiseAlert: ({ cause, rule, source, run, because, command }) =>
      db.write('alert:raise', (tx) => {
        const now = Date.now()
        if (tx.run(STILL_OPEN, { cause, because, now }) > 0) return false
        tx.run(RAISE, { cause, rule, source, run, because, command, now })
        return true
      }),
    markSent: (cause, at) =>
      db.write('alert:sent', (tx) => {
        tx.run(SENT, { cause, at })
      }),
    resolveAlert: (cause) =>
      db.write('alert:resolve', (tx) => tx.run(RESOLVE, { cause, now: Date.now() }) > 0),
  }
}
