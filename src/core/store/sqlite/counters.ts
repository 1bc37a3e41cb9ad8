import { sql, type Connection } from './database.ts'
import { COUNTER_COLUMNS, type CounterColumn } from '../rows.ts'

export type CountChange = Partial<Record<CounterColumn, number>>

const ADD_COUNTS = sql('counters:add')`
  INSERT INTO run_counters (run_id, group_name, planned, in_progress, done, failed, stuck, parked, pages,
                     items_new, items_updated, items_unchanged, skipped, errors, refused, last_activity_at)
  VALUES (:run, :group_name, :planned, :in_progress, :done, :failed, :stuck, :parked, :pages,
          :items_new, :items_updated, :items_unchanged, :skipped, :errors, :refused, :now)
  ON CONFLICT (run_id, group_name) DO UPDATE SET
    planned          = planned         + excluded.planned,
    in_progress      = in_progress     + excluded.in_progress,
    done             = done            + excluded.done,
    failed           = failed          + excluded.failed,
    stuck            = stuck           + excluded.stuck,
    parked           = parked          + excluded.parked,
    pages            = pages           + excluded.pages,
    items_new        = items_new       + excluded.items_new,
    items_updated    = items_updated   + excluded.items_updated,
    items_unchanged  = items_unchanged + excluded.items_unchanged,
    skipped          = skipped         + excluded.skipped,
    errors           = errors          + excluded.errors,
    refused          = refused         + excluded.refused,
    last_activity_at = max(last_activity_at, excluded.last_activity_at)
`

const NO_CHANGE = Object.fromEntries(COUNTER_COLUMNS.map((column) => [column, 0]))

/** Adds to the counters of a run, in the transaction of the change. */
export function addCounts(
  tx: Connection,
  run: string,
  group_name: string,
  change: CountChange,
  now: number,
): void {
  tx.run(ADD_COUNTS, { ...NO_CHANGE, ...change, run, group_name, now })
}

/** For SELECTs over `run_counters`: the sums that make a run's counts. */
export const SUMS = [
  ...COUNTER_COLUMNS.map((column) => `coalesce(sum(t.${column}), 0) AS ${column}`),
  'max(t.last_activity_at) AS last_activity_at',
].join(', ')
