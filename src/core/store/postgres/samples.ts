import type { Store } from '../store.ts'
import {
  LAST_STRETCH_MS,
  RECOVERY_ACTIONS,
  sampledMinutes,
  IDLE_AFTER_MS,
  toSample,
  type SampleRow,
} from '../list-rows.ts'
import { timestamp, ms, sql, type Database } from './database.ts'
import { LIVE } from './runs.ts'

// Any number that no other program chooses. A second transaction leaves the work to the first.
const LOCK = sql('sample:lock')`SELECT pg_try_advisory_xact_lock(7166254318095) AS free`
const IS_LEFT_TO_OTHERS = sql('sample:others')`
  SELECT EXISTS (SELECT 1 FROM unstuck.sample WHERE at > clock_timestamp() - $1 * interval '1 millisecond')
     AND EXISTS (SELECT 1 FROM unstuck.worker WHERE ended_at IS NULL) AS left
`
const FORGET_MINUTE = sql('sample:minute')`
  DELETE FROM unstuck.sample WHERE at >= date_trunc('minute', statement_timestamp())
`
// $1: how long ago an end still counts. A run that has ended is sampled once more, unless there is nothing to record. $2:
// a run with a sample of this hour that has not progressed since it, nor for so long, is left out.
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
         ELSE seen.id = (SELECT id FROM unstuck.run WHERE status IN ${LIVE} ORDER BY id LIMIT 1)
           OR (SELECT (s.pages, s.items, s.done) = (b.pages, b.items, b.done) FROM unstuck.sample s
                WHERE s.run_id = seen.id AND s.at >= clock.hour ORDER BY s.at DESC LIMIT 1) IS NOT TRUE
           OR (SELECT (s.pages, s.items, s.done) = (b.pages, b.items, b.done) FROM unstuck.sample s
                WHERE s.run_id = seen.id AND s.at <= clock.still ORDER BY s.at DESC LIMIT 1) IS NOT TRUE
         END
`

const COLUMNS = `${ms('s.at')} AS at, s.run_id, s.source, s.pages, s.items, s.done`
// $1 since, $2 until, $3 run, $4 source.
const FITS = /* sql */ `
  s.at BETWEEN ${timestamp('$1')} AND ${timestamp('$2')}
  AND ($3::uuid IS NULL OR s.run_id = $3) AND ($4::text IS NULL OR s.source = $4)
`
export const SAMPLES = sql('samples', 'anew')`
  SELECT ${COLUMNS} FROM unstuck.sample s WHERE ${FITS} ORDER BY s.at
`
export const SOME_SAMPLES = sql('samples:some', 'anew')`
  SELECT ${COLUMNS}
    FROM unnest($5::float8[]) AS m (begin), unstuck.sample s
   WHERE s.at >= ${timestamp('m.begin')} AND s.at < ${timestamp('(m.begin + 60000)')} AND NOT s.ended AND ${FITS}
   UNION ALL
  SELECT ${COLUMNS} FROM unstuck.sample s WHERE s.ended AND ${FITS}
   ORDER BY at
`
export const RECOVERIES_PER_STEP = sql('audit:recoveries', 'anew')`
  SELECT $1::float8 + floor((${ms('at')} - $1::float8) / $2) * $2 AS at, count(*)::int AS count
    FROM unstuck.audit
   WHERE at >= ${timestamp('$1')} AND action = ANY ($3::text[])
     AND ($4::uuid IS NULL OR run_id = $4) AND ($5::text IS NULL OR source = $5)
   GROUP BY 1 ORDER BY 1
`

type SampleMethods = Pick<Store, 'takeSample' | 'samples' | 'recoveriesPerStep'>

export function sampleMethods(db: Database): SampleMethods {
  return {
    takeSample: ({ unlessWithinMs } = {}) =>
      db.transaction('sample', async (connection) => {
        const [lock] = await connection.all<{ free: boolean }>(LOCK)
        if (!lock!.free) return
        if (unlessWithinMs !== undefined) {
          const [others] = await connection.all<{ left: boolean }>(IS_LEFT_TO_OTHERS, [
            unlessWithinMs,
          ])
          if (others!.left) return
        }
        await connection.all(FORGET_MINUTE)
        await connection.all(TAKE, [LAST_STRETCH_MS, IDLE_AFTER_MS])
      }),

    samples: async ({ run = null, source = null, ...filter }) => {
      const values = [filter.since, filter.until, run, source]
      const minutes = sampledMinutes(filter)
      const rows = minutes
        ? await db.all<SampleRow>(SOME_SAMPLES, [...values, minutes])
        : await db.all<SampleRow>(SAMPLES, values)
      return rows.map(toSample)
    },

    recoveriesPerStep: ({ since, stepMs, run = null, source = null }) =>
      db.all<{ at: number; count: number }>(RECOVERIES_PER_STEP, [
        since,
        stepMs,
        RECOVERY_ACTIONS,
        run,
        source,
      ]),
  }
}
