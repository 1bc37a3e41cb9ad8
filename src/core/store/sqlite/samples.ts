import type { Store } from '../store.ts'
import {
  hourOf,
  LAST_STRETCH_MS,
  minuteOf,
  RECOVERY_ACTIONS,
  sampledMinutes,
  IDLE_AFTER_MS,
  toSample,
  type SampleRow,
} from '../list-rows.ts'
import { sql, type Database } from './database.ts'
import { LIVE } from './runs.ts'

const IS_LEFT_TO_OTHERS = sql('sample:others')`
  SELECT EXISTS (SELECT 1 FROM sample WHERE at > :after)
     AND EXISTS (SELECT 1 FROM worker WHERE ended_at IS NULL) AS left
`
const FORGET_MINUTE = sql('sample:minute')`DELETE FROM sample WHERE at >= :minute`
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
         ELSE b.id = (SELECT min(id) FROM run WHERE status IN ${LIVE})
           OR (SELECT (s.pages, s.items, s.done) = (b.pages, b.items, b.done) FROM sample s
                WHERE s.run_id = b.id AND s.at >= :hour ORDER BY s.at DESC LIMIT 1) IS NOT TRUE
           OR (SELECT (s.pages, s.items, s.done) = (b.pages, b.items, b.done) FROM sample s
                WHERE s.run_id = b.id AND s.at <= :still ORDER BY s.at DESC LIMIT 1) IS NOT TRUE
         END
`

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

type SampleMethods = Pick<Store, 'takeSample' | 'samples' | 'recoveriesPerStep'>

export function sampleMethods(db: Database): SampleMethods {
  return {
    takeSample: async ({ unlessWithinMs } = {}) => {
      if (unlessWithinMs !== undefined) {
        const after = db.now() - unlessWithinMs
        const others = db.read((tx) => tx.get<{ left: number }>(IS_LEFT_TO_OTHERS, { after }))
        if (others!.left === 1) return
      }
      await db.write('sample', (tx) => {
        const now = tx.now()
        const minute = minuteOf(now)
        tx.run(FORGET_MINUTE, { minute })
        const recently = minute - LAST_STRETCH_MS
        tx.run(TAKE, { now, recently, hour: hourOf(now), still: now - IDLE_AFTER_MS })
      })
    },

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
  }
}
