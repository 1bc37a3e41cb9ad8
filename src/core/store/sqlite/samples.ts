import type { Store } from '../store.ts'
import { hourOf, IDLE_AFTER_MS, LAST_STRETCH_MS, minuteOf } from '../list-rows.ts'
import { sql, type Database } from './database.ts'
import { LIVE } from './runs.ts'

const IS_LEFT_TO_OTHERS = sql('sample:others')`
  SELECT EXISTS (SELECT 1 FROM sample WHERE at > :after)
     AND EXISTS (SELECT 1 FROM worker WHERE ended_at IS NULL) AS left
`
const FORGET = sql('sample:forget')`DELETE FROM sample WHERE at >= :since`
// A run that has ended is sampled once more, unless there is nothing to record. A run with a sample of this hour that has
// not progressed since it, nor for half an hour, is left out. CROSS JOIN keeps SQLite to
// this order: else it would read all runs.
const TAKE = sql('sample:take')`
  WITH seen AS (
    SELECT id, 0 AS ended FROM run WHERE status IN ${LIVE}
     UNION ALL
    SELECT id, 1 FROM run
     WHERE finished_at >= :recently AND status NOT IN ${LIVE}
       AND NOT EXISTS (
         SELECT 1 FROM sample s WHERE s.run_id = run.id AND s.at >= run.finished_at AND s.ended = 1)
  ),
  counters AS (
    SELECT r.id, r.source, coalesce(sum(t.pages), 0) AS pages,
           coalesce(sum(t.items_new + t.items_updated), 0) AS items,
           coalesce(CASE WHEN r.progress_total IS NULL THEN sum(t.done) ELSE r.progress_done END, 0) AS done,
           seen.ended
      FROM seen CROSS JOIN run r ON r.id = seen.id LEFT JOIN run_counters t ON t.run_id = r.id
     GROUP BY r.id
  )
  INSERT INTO sample (at, run_id, source, pages, items, done, ended)
  SELECT :now, b.id, b.source, b.pages, b.items, b.done, b.ended
    FROM counters b
   WHERE CASE WHEN b.ended THEN b.pages > 0 OR b.items > 0
         WHEN :changed THEN (SELECT (s.pages, s.items, s.done) = (b.pages, b.items, b.done) FROM sample s
                              WHERE s.run_id = b.id ORDER BY s.at DESC LIMIT 1) IS NOT TRUE
         ELSE b.id = (SELECT min(id) FROM run WHERE status IN ${LIVE})
           OR (SELECT (s.pages, s.items, s.done) = (b.pages, b.items, b.done) FROM sample s
                WHERE s.run_id = b.id AND s.at >= :hour ORDER BY s.at DESC LIMIT 1) IS NOT TRUE
           OR (SELECT (s.pages, s.items, s.done) = (b.pages, b.items, b.done) FROM sample s
                WHERE s.run_id = b.id AND s.at <= :still ORDER BY s.at DESC LIMIT 1) IS NOT TRUE
         END
`

export function sampleMethods(db: Database): Pick<Store, 'takeSample'> {
  return {
    takeSample: async ({ unlessWithinMs, onlyChanged = false } = {}) => {
      if (unlessWithinMs !== undefined) {
        const after = db.now() - unlessWithinMs
        const others = db.read((tx) => tx.get<{ left: number }>(IS_LEFT_TO_OTHERS, { after }))
        if (others!.left === 1) return
      }
      await db.write('sample', (tx) => {
        const now = tx.now()
        const minute = minuteOf(now)
        if (!onlyChanged) tx.run(FORGET, { since: now - (now % 1_000) })
        const recently = minute - LAST_STRETCH_MS
        const changed = onlyChanged ? 1 : 0
        tx.run(TAKE, { now, recently, changed, hour: hourOf(now), still: now - IDLE_AFTER_MS })
      })
    },
  }
}
