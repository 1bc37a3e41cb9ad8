import type { RunStatus } from '../../model/run.ts'
import { toCounts, type TallyRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { toRunTotals } from '../watching-rows.ts'
import { sql, type Database } from './database.ts'
import { readJson } from './lists.ts'
import { SUMS } from './tally.ts'

export const RUN_TOTALS = sql(
  'totals:runs',
  `SELECT status, count(*) AS count FROM run GROUP BY status`,
)
const TARGET_TOTALS = sql('totals:targets', `SELECT ${SUMS} FROM tally t`)
const WORKER_STATS = sql('worker:stats', `SELECT stats FROM worker WHERE stats IS NOT NULL`)

type TotalVerbs = Pick<Store, 'runTotals' | 'targetTotals' | 'workerStats'>

export function totalVerbs(db: Database): TotalVerbs {
  return {
    runTotals: async () =>
      toRunTotals(db.read((tx) => tx.all<{ status: RunStatus; count: number }>(RUN_TOTALS))),
    targetTotals: async () => toCounts(db.read((tx) => tx.get<TallyRow>(TARGET_TOTALS)!)),
    workerStats: async () =>
      db.read((tx) => tx.many<{ stats: string }>(WORKER_STATS)).map((row) => readJson(row.stats)),
  }
}
