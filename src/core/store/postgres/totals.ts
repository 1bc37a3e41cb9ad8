import type { RunStatus } from '../../model/run.ts'
import { toCounts, type CountersRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { FOLD_BATCH, foldStats, toRunTotals } from '../list-rows.ts'
import { timestamp, sql, type Database } from './database.ts'
import { SUMS } from './counters.ts'

const RUN_TOTALS = sql(
  'totals:runs',
  `SELECT status, count(*)::int AS count FROM unstuck.run GROUP BY status`,
)
const TARGET_TOTALS = sql('totals:targets', `SELECT ${SUMS} FROM unstuck.run_counters t`)
const WORKER_STATS = sql('worker:stats', `SELECT stats FROM unstuck.worker WHERE stats IS NOT NULL`)
const OLD_STATS = sql(
  'worker:old-stats',
  /* sql */ `
  SELECT id, stats FROM unstuck.worker WHERE stats IS NOT NULL AND ended_at < ${timestamp('$1')}
   ORDER BY id LIMIT $2 FOR UPDATE
`,
)
const KEEP_STATS = sql('worker:keep-stats', `UPDATE unstuck.worker SET stats = $2 WHERE id = $1`)
const FORGET_STATS = sql(
  'worker:forget-stats',
  `UPDATE unstuck.worker SET stats = NULL WHERE id = ANY ($1::uuid[])`,
)

type TotalMethods = Pick<Store, 'runTotals' | 'targetTotals' | 'workerStats' | 'foldWorkerStats'>

export function totalMethods(db: Database): TotalMethods {
  return {
    runTotals: async () =>
      toRunTotals(await db.all<{ status: RunStatus; count: number }>(RUN_TOTALS)),
    targetTotals: async () => toCounts((await db.all<CountersRow>(TARGET_TOTALS))[0]!),
    workerStats: async () =>
      (await db.all<{ stats: unknown }>(WORKER_STATS)).map(({ stats }) => stats),

    foldWorkerStats: async (endedBefore) => {
      for (let found = FOLD_BATCH; found === FOLD_BATCH;) {
        found = await db.transaction('worker:fold-stats', async (connection) => {
          const values = [endedBefore, FOLD_BATCH]
          const rows = await connection.all<{ id: string; stats: unknown }>(OLD_STATS, values)
          const folded = foldStats(rows)
          if (!folded) return 0
          await connection.all(KEEP_STATS, [folded.keeper, folded.sum])
          await connection.all(FORGET_STATS, [folded.others])
          return rows.length
        })
      }
    },
  }
}
