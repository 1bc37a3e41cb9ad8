import type { Store } from '../store.ts'
import { IDLE_AFTER_MS, LAST_STRETCH_MS } from '../list-rows.ts'
import { sql, type Database } from './database.ts'
import { LIVE } from './runs.ts'

// Any number that no other program chooses. A second transaction leaves the work to the first.
const LOCK = sql('sample:lock')`SELECT pg_try_advisory_xact_lock(7166254318095) AS free`
const IS_LEFT_TO_OTHERS = sql('sample:others')`
  SELECT EXISTS (SELECT 1 FROM unstuck.sample WHERE at > clock_timestamp() - $1 * interval '1 millisecond')
     AND EXISTS (SELECT 1 FROM unstuck.worker WHERE ended_at IS NULL) AS left
`
const FORGET = sql('sample:forget')`
  DELETE FROM unstuck.sample WHERE at >= date_trunc('second', statement_timestamp())
`
// $1: how long ago an end still counts. A run that has ended is sampled once more, unless there is nothing to record. $2:
// a run with a sample of this hour that has not progressed since it, nor for so long, is left out. $3: so is one that has not
// progressed since its last sample.
export const TAKE = sql('sample:take')`
  WITH clock AS MATERIALIZED (
    SELECT now, date_trunc('hour', now AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS hour,
           now - $2 * interval '1 millisecond' AS still
      FROM clock_timestamp() AS now
  ),
  seen AS (
    SELECT id, source, progress_total, progress_done, false AS ended FROM unstuck.run WHERE status IN ${LIVE}
     UNION ALL
    SELECT id, source, progress_total, progress_done, true FROM unstuck.run r
     WHERE finished_at >= date_trunc('minute', statement_timestamp()) - $1 * interval '1 millisecond'
       AND status NOT IN ${LIVE}
       AND (SELECT count(*) FROM unstuck.sample s WHERE s.run_id = r.id AND s.at >= r.finished_at AND s.ended) = 0
  )
  INSERT INTO unstuck.sample (at, run_id, source, pages, items, done, ended)
  SELECT clock.now, seen.id, seen.source, b.pages, b.items, b.done, seen.ended
    FROM clock, seen
   CROSS JOIN LATERAL (
     SELECT coalesce(sum(pages), 0) AS pages, coalesce(sum(items_new + items_updated), 0) AS items,
            CASE WHEN seen.progress_total IS NULL THEN coalesce(sum(done), 0)
                 ELSE coalesce(seen.progress_done, 0) END AS done
       FROM unstuck.run_counters WHERE run_id = seen.id
   ) AS b
   WHERE CASE WHEN seen.ended THEN b.pages > 0 OR b.items > 0
         WHEN $3::boolean THEN (SELECT (s.pages, s.items, s.done) = (b.pages, b.items, b.done) FROM unstuck.sample s
                                 WHERE s.run_id = seen.id ORDER BY s.at DESC LIMIT 1) IS NOT TRUE
         ELSE seen.id = (SELECT id FROM unstuck.run WHERE status IN ${LIVE} ORDER BY id LIMIT 1)
           OR (SELECT (s.pages, s.items, s.done) = (b.pages, b.items, b.done) FROM unstuck.sample s
                WHERE s.run_id = seen.id AND s.at >= clock.hour ORDER BY s.at DESC LIMIT 1) IS NOT TRUE
           OR (SELECT (s.pages, s.items, s.done) = (b.pages, b.items, b.done) FROM unstuck.sample s
                WHERE s.run_id = seen.id AND s.at <= clock.still ORDER BY s.at DESC LIMIT 1) IS NOT TRUE
         END
`

export function sampleMethods(db: Database): Pick<Store, 'takeSample'> {
  return {
    takeSample: ({ unlessWithinMs, onlyChanged = false } = {}) =>
      db.transaction('sample', async (connection) => {
        const [lock] = await connection.all<{ free: boolean }>(LOCK)
        if (!lock!.free) return
        if (unlessWithinMs !== undefined) {
          const [others] = await connection.all<{ left: boolean }>(IS_LEFT_TO_OTHERS, [
            unlessWithinMs,
          ])
          if (others!.left) return
        }
        if (!onlyChanged) await connection.all(FORGET)
        await connection.all(TAKE, [LAST_STRETCH_MS, IDLE_AFTER_MS, onlyChanged])
      }),
  }
}
