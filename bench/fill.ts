import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'

export const ENDED_RUNS = 100_000

/** A hundred thousand runs that have ended, a quarter of them failed, of five hundred sources. */
export async function fillWithEndedRuns(url: string): Promise<void> {
  await (url.startsWith('sqlite:') ? fillSqlite(url) : fillPostgres(url))
}

/** What the server's own maintenance does within minutes. */
export async function runMaintenance(url: string): Promise<void> {
  if (url.startsWith('sqlite:')) return
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('VACUUM ANALYZE')
  await client.end()
}

const POLICY = '{}'

async function fillSqlite(url: string): Promise<void> {
  using db = new DatabaseSync(url.slice('sqlite:'.length))
  const id = `lower(printf('%08x-%04x-7%03x-8%03x-%s', n, n % 65536, n % 4096, n % 4096, hex(randomblob(6))))`
  db.exec(/* sql */ `
    BEGIN;
    CREATE TEMP TABLE old AS
      WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < ${ENDED_RUNS})
      SELECT n, ${id} AS run, ${id} AS target FROM count;
    INSERT INTO run (id, source, kind, status, policy, created_at, started_at, planned_at, finished_at)
      SELECT run, 'old-' || (n % 500), 'single', CASE n % 4 WHEN 0 THEN 'failed' ELSE 'succeeded' END,
             '${POLICY}', n, n, n, n FROM old;
    INSERT INTO target (id, run_id, key, status, last_activity_at, finished_at)
      SELECT target, run, 'k', CASE n % 4 WHEN 0 THEN 'failed' ELSE 'done' END, n, n FROM old;
    INSERT INTO run_counters (run_id, group_name, done, pages, last_activity_at) SELECT run, '', 1, 3, n FROM old;
    COMMIT;
  `)
}

async function fillPostgres(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(/* sql */ `
    CREATE TEMP TABLE old AS
      SELECT n, gen_random_uuid() AS run, gen_random_uuid() AS target FROM generate_series(1, ${ENDED_RUNS}) AS n;
    INSERT INTO unstuck.run (id, source, kind, status, policy, started_at, planned_at, finished_at)
      SELECT run, 'old-' || (n % 500), 'single', CASE n % 4 WHEN 0 THEN 'failed' ELSE 'succeeded' END,
             '${POLICY}', now(), now(), now() FROM old;
    INSERT INTO unstuck.target (id, run_id, key, status, finished_at)
      SELECT target, run, 'k', CASE n % 4 WHEN 0 THEN 'failed' ELSE 'done' END, now() FROM old;
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, done, pages) SELECT run, '', '', 1, 3 FROM old;
  `)
  await client.end()
}
