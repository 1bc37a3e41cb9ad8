import type { RunStatus } from '../../model/run.ts'
import { toCounts, type TallyRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { FOLDED_AT_ONCE, foldStats, toRunTotals } from '../list-rows.ts'
import { moment, sql, type Database } from './database.ts'
import { SUMS } from './counters.ts'

const RUN_TOTALS = sql(
  'totals:runs',
  `SELECT status, count(*)::int AS count FROM unstuck.run GROUP BY status`,
)
const TARGET_TOTALS = sql('totals:targets', `SELECT ${SUMS} FROM unstuck.tally t`)
const WORKER_STATS = sql('worker:stats', `SELECT stats FROM unstuck.worker WHERE stats IS NOT NULL`)
const OLD_STATS = sql(
  'worker:old-stats',
  /* sql */ `
  SELECT id, stats FROM unstuck.worker WHERE stats IS NOT NULL AND ended_at < ${moment('$1')}
   ORDER BY id LIMIT $2 FOR UPDATE
`,
)
const KEEP_STATS = sql('worker:keep-stats', `UPDATE unstuck.worker SET stats = $2 WHERE id = $1`)
const FORGET_STATS = sql(
  'worker:forget-stats',
  `UPDATE unstuck.worker SET stats = NULL WHERE id = ANY ($1::uuid[])`,
)

type TotalVerbs = Pick<Store, 'runTotals' | 'targetTotals' | 'workerStats' | 'foldWorkerStats'>

export function totalVerbs(db: Database): TotalVerbs {
  return {
    runTotals: async () =>
      toRunTotals(await db.all<{ status: RunStatus; count: number }>(RUN_TOTALS)),
    targetTotals: async () => toCounts((await db.all<TallyRow>(TARGET_TOTALS))[0]!),
    workerStats: async () =>
      (await db.all<{ stats: unknown }>(WORKER_STATS)).map(({ stats }) => stats),

    foldWorkerStats: async (endedBefore) => {
      for (let found = FOLDED_AT_ONCE; found === FOLDED_AT_ONCE;) {
        found = await db.transaction('worker:fold-stats', async (connection) => {
          const values = [endedBefore, FOLDED_AT_ONCE]
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
