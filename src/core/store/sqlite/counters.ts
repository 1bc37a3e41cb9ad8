import { sql, type Connection } from './database.ts'

export type CountChange = {
  planned?: number
  in_progress?: number
  done?: number
  failed?: number
  stuck?: number
  parked?: number
  pages?: number
  items_new?: number
  items_updated?: number
  items_unchanged?: number
  skipped?: number
  refused?: number
}

const ADD_COUNTS = sql('counters:add')`
  INSERT INTO run_counters (run_id, group_name, planned, in_progress, done, failed, stuck, parked, pages,
                     items_new, items_updated, items_unchanged, skipped, refused, last_activity_at)
  VALUES (:run, :group_name, :planned, :in_progress, :done, :failed, :stuck, :parked, :pages,
          :items_new, :items_updated, :items_unchanged, :skipped, :refused, :now)
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
    refused          = refused         + excluded.refused,
    last_activity_at = max(last_activity_at, excluded.last_activity_at)
`

const NO_CHANGE: Required<CountChange> = {
  planned: 0,
  in_progress: 0,
  done: 0,
  failed: 0,
  stuck: 0,
  parked: 0,
  pages: 0,
  items_new: 0,
  items_updated: 0,
  items_unchanged: 0,
  skipped: 0,
  refused: 0,
}

/** Enters a change into the books, in the transaction that makes it. */
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
export const SUMS = /* sql */ `
  coalesce(sum(t.planned), 0)         AS planned,
  coalesce(sum(t.in_progress), 0)     AS in_progress,
  coalesce(sum(t.done), 0)            AS done,
  coalesce(sum(t.failed), 0)          AS failed,
  coalesce(sum(t.stuck), 0)           AS stuck,
  coalesce(sum(t.parked), 0)          AS parked,
  coalesce(sum(t.pages), 0)           AS pages,
  coalesce(sum(t.items_new), 0)       AS items_new,
  coalesce(sum(t.items_updated), 0)   AS items_updated,
  coalesce(sum(t.items_unchanged), 0) AS items_unchanged,
  coalesce(sum(t.skipped), 0)         AS skipped,
  coalesce(sum(t.refused), 0)         AS refused,
  max(t.last_activity_at)             AS last_activity_at
`
