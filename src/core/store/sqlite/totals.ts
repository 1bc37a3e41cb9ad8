import type { RunStatus } from '../../model/run.ts'
import { toCounts, type CountersRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { FOLD_BATCH, foldStats, toRunTotals } from '../list-rows.ts'
import { sql, type Database } from './database.ts'
import { readJson } from './lists.ts'
import { SUMS } from './counters.ts'

export const RUN_TOTALS = sql(
  'totals:runs',
  `SELECT status, count(*) AS count FROM run GROUP BY status`,
)
const TARGET_TOTALS = sql('totals:targets', `SELECT ${SUMS} FROM run_counters t`)
const WORKER_STATS = sql('worker:stats', `SELECT stats FROM worker WHERE stats IS NOT NULL`)
const OLD_STATS = sql(
  'worker:old-stats',
  /* sql */ `
  SELECT id, stats FROM worker WHERE stats IS NOT NULL AND ended_at < :endedBefore
   ORDER BY id LIMIT :limit
`,
)
const KEEP_STATS = sql('worker:keep-stats', `UPDATE worker SET stats = :sum WHERE id = :keeper`)
const FORGET_STATS = sql(
  'worker:forget-stats',
  `UPDATE worker SET stats = NULL WHERE id IN (SELECT value FROM json_each(:others))`,
)

type TotalMethods = Pick<Store, 'runTotals' | 'targetTotals' | 'workerStats' | 'foldWorkerStats'>

export function totalMethods(db: Database): TotalMethods {
  return {
    runTotals: async () =>
      toRunTotals(db.read((tx) => tx.all<{ status: RunStatus; count: number }>(RUN_TOTALS))),
    targetTotals: async () => toCounts(db.read((tx) => tx.get<CountersRow>(TARGET_TOTALS)!)),
    workerStats: async () =>
      db.read((tx) => tx.many<{ stats: string }>(WORKER_STATS)).map((row) => readJson(row.stats)),

    foldWorkerStats: async (endedBefore) => {
      for (let found = FOLD_BATCH; found === FOLD_BATCH;) {
        found = await db.write('worker:fold-stats', (tx) => {
          const params = { endedBefore, limit: FOLD_BATCH }
          const rows = tx.all<{ id: string; stats: string }>(OLD_STATS, params)
          const folded = foldStats(rows.map(({ id, stats }) => ({ id, stats: readJson(stats) })))
          if (!folded) return 0
          tx.run(KEEP_STATS, { keeper: folded.keeper, sum: folded.sum })
          tx.run(FORGET_STATS, { others: JSON.stringify(folded.others) })
          return rows.length
        })
      }
    },
  }
}
