import { COUNTER_COLUMNS } from '../rows.ts'
import { sql, type Queryable } from './database.ts'

/** The end of every statement that adds to counters: those that it does not name change by 0. */
export const ADD_ON_CONFLICT = /* sql */ `
  ON CONFLICT (run_id, group_name, writer) DO UPDATE SET
    planned          = run_counters.planned         + excluded.planned,
    in_progress      = run_counters.in_progress     + excluded.in_progress,
    done             = run_counters.done            + excluded.done,
    failed           = run_counters.failed          + excluded.failed,
    stuck            = run_counters.stuck           + excluded.stuck,
    parked           = run_counters.parked          + excluded.parked,
    pages            = run_counters.pages           + excluded.pages,
    items_new        = run_counters.items_new       + excluded.items_new,
    items_updated    = run_counters.items_updated   + excluded.items_updated,
    items_unchanged  = run_counters.items_unchanged + excluded.items_unchanged,
    skipped          = run_counters.skipped         + excluded.skipped,
    errors           = run_counters.errors          + excluded.errors,
    refused          = run_counters.refused         + excluded.refused,
    last_activity_at = greatest(run_counters.last_activity_at, excluded.last_activity_at)
`

/** The entry for targets that changed their status: rows of `moved`, with what each was and what it is now. */
export const ADD_MOVED_COUNTS = /* sql */ `
  INSERT INTO unstuck.run_counters (run_id, group_name, writer, planned, in_progress, done, failed, stuck, parked)
  SELECT run_id, group_name, $1,
         count(*) FILTER (WHERE status = 'planned')     - count(*) FILTER (WHERE was = 'planned'),
         count(*) FILTER (WHERE status = 'in_progress') - count(*) FILTER (WHERE was = 'in_progress'),
         count(*) FILTER (WHERE status = 'done')        - count(*) FILTER (WHERE was = 'done'),
         count(*) FILTER (WHERE status = 'failed')      - count(*) FILTER (WHERE was = 'failed'),
         count(*) FILTER (WHERE status = 'stuck')       - count(*) FILTER (WHERE was = 'stuck'),
         count(*) FILTER (WHERE status = 'parked')      - count(*) FILTER (WHERE was = 'parked')
    FROM moved GROUP BY run_id, group_name ORDER BY run_id, group_name
  ${ADD_ON_CONFLICT}
`

/** For SELECTs over `run_counters t`: the sums that make a run's counts. */
export const SUMS = COUNTER_COLUMNS.map(
  (column) => `coalesce(sum(t.${column}), 0)::int AS ${column}`,
).join(', ')

const FOLD = sql('counters:fold')`
  WITH folded AS (
    DELETE FROM unstuck.run_counters WHERE writer >= $1 || '/' AND writer < $1 || '0'
    RETURNING *
  )
  INSERT INTO unstuck.run_counters (
    run_id, group_name, writer, planned, in_progress, done, failed, stuck, parked, pages,
    items_new, items_updated, items_unchanged, skipped, errors, refused, last_activity_at)
  SELECT run_id, group_name, '', sum(planned), sum(in_progress), sum(done), sum(failed), sum(stuck), sum(parked),
         sum(pages), sum(items_new), sum(items_updated), sum(items_unchanged), sum(skipped), sum(errors), sum(refused),
         max(last_activity_at)
    FROM folded GROUP BY run_id, group_name ORDER BY run_id, group_name
  ${ADD_ON_CONFLICT}
`

/** Moves what a worker's connections wrote into the rows that stay. The sums are the same at every moment. */
export async function foldCounters(db: Queryable, worker: string): Promise<void> {
  await db.all(FOLD, [worker])
}
