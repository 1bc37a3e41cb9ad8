const time = (column: string): string =>
  `strftime('%Y-%m-%dT%H:%M:%fZ', ${column} / 1000.0, 'unixepoch')`
const secondsSince = (column: string): string =>
  `max(0.0, round((julianday('now') - 2440587.5) * 86400.0 - ${column} / 1000.0, 3))`

/**
 * Views for monitoring by SQL: facts alone, since only a worker can judge. They have no data of pages or items. Without
 * newer syntax, such as `->>`: a program whose SQLite cannot parse a view cannot open the file.
 */
export const views = /* sql */ `
  -- Workers that have not ended. A process without a source counts only while it holds targets.
  CREATE VIEW unstuck_active_workers AS
  SELECT w.id AS worker_id, w.source, w.host, w.pid, w.version, ${time('w.started_at')} AS started_at,
         ${time('w.last_heartbeat_at')} AS last_heartbeat_at,
         ${secondsSince('w.last_heartbeat_at')} AS heartbeat_age_seconds, w.lease_ms / 1000.0 AS lease_seconds,
         count(t.id) AS targets, ${time('max(t.last_activity_at)')} AS last_activity_at,
         ${secondsSince('max(t.last_activity_at)')} AS seconds_since_activity,
         ${secondsSince('min(t.last_activity_at)')} AS seconds_since_oldest_activity
    FROM worker w LEFT JOIN target t ON t.worker_id = w.id AND t.status = 'in_progress'
   WHERE w.ended_at IS NULL
   GROUP BY w.id HAVING w.source <> '' OR count(t.id) > 0;

  CREATE VIEW unstuck_worker_heartbeats AS
  SELECT id AS worker_id, source, host, pid, heartbeats, ${time('last_heartbeat_at')} AS last_heartbeat_at,
         ${secondsSince('last_heartbeat_at')} AS heartbeat_age_seconds,
         heartbeat_ms / 1000.0 AS heartbeat_interval_seconds, lease_ms / 1000.0 AS lease_seconds,
         loop_lag_ms / 1000.0 AS loop_lag_seconds, ${time('ended_at')} AS ended_at
    FROM worker;

  CREATE VIEW unstuck_targets_by_page AS
  SELECT r.source, r.id AS run_id, t.page, count(*) AS targets
    FROM run r JOIN target t ON t.run_id = r.id
   WHERE r.status IN ('queued', 'running', 'interrupted')
   GROUP BY r.id, t.page;

  CREATE VIEW unstuck_progress_by_group AS
  SELECT r.source, r.id AS run_id, r.status AS run_status, nullif(c.group_name, '') AS group_name,
         c.planned + c.in_progress + c.done + c.failed + c.stuck + c.parked AS targets, c.planned, c.in_progress,
         c.done, c.failed, c.stuck, c.parked, c.pages, c.items_new, c.items_updated, c.items_unchanged, c.skipped,
         c.errors, ${time('c.last_activity_at')} AS last_activity_at,
         ${secondsSince('c.last_activity_at')} AS seconds_since_activity
    FROM run r JOIN run_counters c ON c.run_id = r.id;

  -- The newest thousand of a week. Entries of operators have no evidence.
  CREATE VIEW unstuck_recent_recoveries AS
  SELECT id, ${time('at')} AS recovered_at, ${secondsSince('at')} AS seconds_ago, source, run_id, target_id, action,
         because, json_extract(before, '$.status') AS status_before,
         json_extract(after, '$.status') AS status_after, json_extract(before, '$.worker') AS worker_id, actor
    FROM audit
   WHERE at >= (julianday('now') - 2440587.5 - 7) * 86400000.0 AND evidence <> 'null'
     AND action IN ('resume', 'replan', 'retry', 'park', 'hold', 'fail', 'abandon')
   ORDER BY at DESC, id DESC LIMIT 1000;
`
