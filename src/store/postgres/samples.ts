import type { Store } from '../store.ts'
import {
  LAST_STRETCH_MS,
  RECOVERIES,
  someMinutes,
  toSample,
  type SampleRow,
} from '../watching-rows.ts'
import { moment, ms, sql, type Database } from './database.ts'
import { LIVE } from './runs.ts'

// Any number that nobody else would choose. Who comes second sees what the first has written.
const LOCK = sql('sample:lock', `SELECT pg_advisory_xact_lock(7166254318095)`)
const FORGET_MINUTE = sql(
  'sample:minute',
  `DELETE FROM unstuck.sample WHERE at >= date_trunc('minute', statement_timestamp())`,
)
// $1: how long ago an end still counts. A run that has ended is taken once more, for its last stretch, unless there
// is nothing to tell of it.
export const TAKE = sql(
  'sample:take',
  /* sql */ `
  WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
  seen AS (
    SELECT id, source, progress_total, progress_done, false AS ended FROM unstuck.run WHERE status IN ${LIVE}
     UNION ALL
    SELECT id, source, progress_total, progress_done, true FROM unstuck.run r
     WHERE finished_at >= date_trunc('minute', statement_timestamp()) - $1 * interval '1 millisecond'
       AND status NOT IN ${LIVE}
       AND (SELECT count(*) FROM unstuck.sample s WHERE s.run_id = r.id AND s.at >= r.finished_at AND s.ended) = 0
  )
  INSERT INTO unstuck.sample (at, run_id, source, pages, items, done, ended)
  SELECT clock.now, seen.id, seen.source, books.pages, books.items,
         CASE WHEN seen.progress_total IS NULL THEN books.done ELSE coalesce(seen.progress_done, 0) END,
         seen.ended
    FROM clock, seen
   CROSS JOIN LATERAL (
     SELECT coalesce(sum(pages), 0) AS pages, coalesce(sum(items_new + items_updated), 0) AS items,
            coalesce(sum(done), 0) AS done
       FROM unstuck.tally WHERE run_id = seen.id
   ) AS books
   WHERE NOT seen.ended OR books.pages > 0 OR books.items > 0
`,
)

const COLUMNS = `${ms('s.at')} AS at, s.run_id, s.source, s.pages, s.items, s.done`
// $1 since, $2 until, $3 run, $4 source.
const FITS = /* sql */ `
  s.at BETWEEN ${moment('$1')} AND ${moment('$2')}
  AND ($3::uuid IS NULL OR s.run_id = $3) AND ($4::text IS NULL OR s.source = $4)
`
export const SAMPLES = sql(
  'samples',
  `SELECT ${COLUMNS} FROM unstuck.sample s WHERE ${FITS} ORDER BY s.at`,
  'anew',
)
export const SOME_SAMPLES = sql(
  'samples:some',
  /* sql */ `
  SELECT ${COLUMNS}
    FROM unnest($5::float8[]) AS m (begin), unstuck.sample s
   WHERE s.at >= ${moment('m.begin')} AND s.at < ${moment('(m.begin + 60000)')} AND NOT s.ended AND ${FITS}
   UNION ALL
  SELECT ${COLUMNS} FROM unstuck.sample s WHERE s.ended AND ${FITS}
   ORDER BY at
`,
  'anew',
)
const PRUNE = sql(
  'sample:prune',
  /* sql */ `
  WITH gone AS (
    DELETE FROM unstuck.sample
     WHERE ctid = ANY (ARRAY (
       SELECT ctid FROM unstuck.sample WHERE at < ${moment('$1')} ORDER BY at LIMIT $2))
    RETURNING 1
  )
  SELECT count(*)::int AS count FROM gone
`,
)
/** What is deleted at once: a short transaction each. */
const PRUNED_AT_ONCE = 2_000

export const RECOVERIES_PER_STEP = sql(
  'audit:recoveries',
  /* sql */ `
  SELECT $1::float8 + floor((${ms('at')} - $1::float8) / $2) * $2 AS at, count(*)::int AS count
    FROM unstuck.audit
   WHERE at >= ${moment('$1')} AND action = ANY ($3::text[])
     AND ($4::uuid IS NULL OR run_id = $4) AND ($5::text IS NULL OR source = $5)
   GROUP BY 1 ORDER BY 1
`,
  'anew',
)

type SampleVerbs = Pick<Store, 'takeSample' | 'samples' | 'pruneSamples' | 'recoveriesPerStep'>

export function sampleVerbs(db: Database): SampleVerbs {
  return {
    takeSample: () =>
      db.transaction('sample', async (connection) => {
        await connection.all(LOCK)
        await connection.all(FORGET_MINUTE)
        await connection.all(TAKE, [LAST_STRETCH_MS])
      }),

    samples: async ({ run = null, source = null, ...filter }) => {
      const values = [filter.since, filter.until, run, source]
      const minutes = someMinutes(filter)
      const rows = minutes
        ? await db.all<SampleRow>(SOME_SAMPLES, [...values, minutes])
        : await db.all<SampleRow>(SAMPLES, values)
      return rows.map(toSample)
    },

    pruneSamples: async (before) => {
      for (let total = 0; ;) {
        const [pruned] = await db.all<{ count: number }>(PRUNE, [before, PRUNED_AT_ONCE])
        total += pruned!.count
        if (pruned!.count < PRUNED_AT_ONCE) return total
      }
    },

    recoveriesPerStep: ({ since, stepMs, run = null, source = null }) =>
      db.all<{ at: number; count: number }>(RECOVERIES_PER_STEP, [
        since,
        stepMs,
        RECOVERIES,
        run,
        source,
      ]),
  }
}
