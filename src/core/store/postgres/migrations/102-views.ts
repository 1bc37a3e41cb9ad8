const secondsSince = (column: string): string =>
  `greatest(0, round(extract(epoch FROM statement_timestamp() - ${column})::numeric, 3))::float8`
const sum = (columns: string): string =>
  columns.replaceAll(/\w+/g, (column) => `sum(c.${column}) AS ${column}`)

/** Views for monitoring by SQL: facts alone, since only a worker can judge. They have no data of pages or items. */
export const views = /* sql */ `
  -- Workers that have not ended. A process without a source counts only while it holds targets.
  CREATE VIEW unstuck.active_workers AS
  SELECT w.id AS worker_id, w.source, w.host, w.pid, w.version, w.started_at, w.last_heartbeat_at,
         ${secondsSince('w.last_heartbeat_at')} AS heartbeat_age_seconds, w.lease_ms / 1000.0::float8 AS lease_seconds,
         count(t.id) AS targets, max(t.last_activity_at) AS last_activity_at,
         ${secondsSince('max(t.last_activity_at)')} AS seconds_since_activity,
         ${secondsSince('min(t.last_activity_at)')} AS seconds_since_oldest_activity
    FROM unstuck.worker w LEFT JOIN unstuck.target t ON t.worker_id = w.id AND t.status = 'in_progress'
   WHERE w.ended_at IS NULL
   GROUP BY w.id HAVING w.source <> '' OR count(t.id) > 0;

  CREATE VIEW unstuck.worker_heartbeats AS
  SELECT id AS worker_id, source, host, pid, heartbeats, last_heartbeat_at,
         ${secondsSince('last_heartbeat_at')} AS heartbeat_age_seconds,
         heartbeat_ms / 1000.0::float8 AS heartbeat_interval_seconds, lease_ms / 1000.0::float8 AS lease_seconds,
         loop_lag_ms / 1000.0::float8 AS loop_lag_seconds, ended_at
    FROM unstuck.worker;

  CREATE VIEW unstuck.targets_by_page AS
  SELECT r.source, r.id AS run_id, t.page, count(*) AS targets
    FROM unstuck.run r JOIN unstuck.target t ON t.run_id = r.id
   WHERE r.status IN ('queued', 'running', 'interrupted')
   GROUP BY r.id, t.page;

  CREATE VIEW unstuck.progress_by_group AS
  SELECT r.source, r.id AS run_id, r.status AS run_status, nullif(c.group_name, '') AS group_name,
         sum(c.planned + c.in_progress + c.done + c.failed + c.stuck + c.parked) AS targets,
         ${sum('planned, in_progress, done, failed, stuck, parked, pages')},
         ${sum('items_new, items_updated, items_unchanged, skipped, errors')},
         max(c.last_activity_at) AS last_activity_at, ${secondsSince('max(c.last_activity_at)')} AS seconds_since_activity
    FROM unstuck.run r JOIN unstuck.run_counters c ON c.run_id = r.id
   GROUP BY r.id, c.group_name;

  -- The newest thousand of a week. Entries of operators have no evidence.
  CREATE VIEW unstuck.recent_recoveries AS
  SELECT id, at AS recovered_at, ${secondsSince('at')} AS seconds_ago, source, run_id, target_id, action, because,
         before ->> 'status' AS status_before, after ->> 'status' AS status_after, before ->> 'worker' AS worker_id,
         actor
    FROM unstuck.audit
   WHERE at >= statement_timestamp() - interval '7 days' AND evidence <> 'null'
     AND action IN ('resume', 'replan', 'retry', 'park', 'hold', 'fail', 'abandon')
   ORDER BY at DESC, id DESC LIMIT 1000;
`
