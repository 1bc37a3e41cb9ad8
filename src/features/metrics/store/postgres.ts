import { ms, sql, timestamp, type Database } from '../../../core/store/postgres/kit.ts'
import {
  RECOVERY_ACTIONS,
  sampledMinutes,
  toSample,
  type AuditCount,
  type MetricsStore,
  type SampleRow,
} from './store.ts'

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

const COUNTS = sql('audit:counts', 'anew')`
  SELECT source, action, count(*)::int AS count, ${ms('max(at)')} AS "lastAt" FROM unstuck.audit
   WHERE at >= ${timestamp('$1')} AND ($2::text IS NULL OR source = $2)
   GROUP BY source, action ORDER BY source COLLATE "C", action COLLATE "C"
`

const WORKER_STATS = sql('worker:stats')`SELECT stats FROM unstuck.worker WHERE stats IS NOT NULL`

export function metricsMethods(db: Database): MetricsStore {
  return {
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

    auditCounts: ({ since = 0, source = null }) => db.all<AuditCount>(COUNTS, [since, source]),

    workerStats: async () =>
      (await db.all<{ stats: unknown }>(WORKER_STATS)).map(({ stats }) => stats),
  }
}
