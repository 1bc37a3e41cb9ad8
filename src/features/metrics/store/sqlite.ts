import { readJson, sql, type Database } from '../../../core/store/sqlite/kit.ts'
import {
  RECOVERY_ACTIONS,
  sampledMinutes,
  toSample,
  type AuditCount,
  type MetricsStore,
  type SampleRow,
} from './store.ts'

// CROSS JOIN and the plus keep SQLite to a walk for each minute: else it would hold all samples against all of them.
const COLUMNS = 's.at, s.run_id, s.source, s.pages, s.items, s.done'
const LISTS = (name: string, whose: string) => ({
  every: sql(`samples:${name}`)`
  SELECT ${COLUMNS} FROM sample s WHERE ${whose} s.at BETWEEN :since AND :until ORDER BY s.at
`,
  some: sql(`samples:some-${name}`)`
  SELECT ${COLUMNS} FROM json_each(:minutes) m CROSS JOIN sample s
   WHERE ${whose} s.at >= m.value AND s.at < m.value + 60000 AND +s.at <= :until AND s.ended = 0
   UNION ALL
  SELECT ${COLUMNS} FROM sample s WHERE ${whose} s.at BETWEEN :since AND :until AND s.ended = 1
   ORDER BY at
`,
})
const ALL = LISTS('all', '')
const OF_RUN = LISTS('run', 's.run_id = :run AND')
const OF_SOURCE = LISTS('source', 's.source = :source AND')

const RECOVERIES_PER_STEP = sql('audit:recoveries')`
  SELECT :since + CAST((at - :since) / :step AS INTEGER) * :step AS at, count(*) AS count FROM audit
   WHERE at >= :since AND action IN (SELECT value FROM json_each(:actions))
     AND (:run IS NULL OR run_id = :run) AND (:source IS NULL OR source = :source)
   GROUP BY 1 ORDER BY 1
`

const COUNTS = sql('audit:counts')`
  SELECT source, action, count(*) AS count, max(at) AS lastAt FROM audit
   WHERE at >= :since AND (:source IS NULL OR source = :source)
   GROUP BY source, action ORDER BY source, action
`

const WORKER_STATS = sql('worker:stats')`SELECT stats FROM worker WHERE stats IS NOT NULL`

export function metricsMethods(db: Database): MetricsStore {
  return {
    samples: async ({ run, source, ...filter }) => {
      const { since, until } = filter
      const [lists, whose] =
        run !== undefined
          ? [OF_RUN, { run }]
          : source !== undefined
            ? [OF_SOURCE, { source }]
            : [ALL, {}]
      const minutes = sampledMinutes(filter)
      const asked =
        minutes === null
          ? { statement: lists.every, params: { since, until, ...whose } }
          : {
              statement: lists.some,
              params: { since, until, minutes: JSON.stringify(minutes), ...whose },
            }
      const rows = db.read((tx) => tx.many<SampleRow>(asked.statement, asked.params))
      return rows.map(toSample)
    },

    recoveriesPerStep: async ({ since, stepMs, run = null, source = null }) =>
      db.read((tx) =>
        tx
          .all<{ at: number; count: number }>(RECOVERIES_PER_STEP, {
            since,
            step: stepMs,
            actions: JSON.stringify(RECOVERY_ACTIONS),
            run,
            source,
          })
          .map(({ at, count }) => ({ at, count })),
      ),

    auditCounts: async ({ since = 0, source = null }) =>
      db.read((tx) => tx.all<AuditCount>(COUNTS, { since, source }).map((row) => ({ ...row }))),

    workerStats: async () =>
      db.read((tx) => tx.many<{ stats: string }>(WORKER_STATS)).map((row) => readJson(row.stats)),
  }
}
