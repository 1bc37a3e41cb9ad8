import type { RunStatus } from '../../model/run.ts'
import { toCounts, type CountersRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { toRunTotals } from '../list-rows.ts'
import { sql, type Database } from './database.ts'
import { readJson } from './lists.ts'
import { SUMS } from './counters.ts'

export const RUN_TOTALS = sql('totals:runs')`
  SELECT status, count(*) AS count FROM run GROUP BY status
`
const TARGET_TOTALS = sql('totals:targets')`SELECT ${SUMS} FROM run_counters t`
const WORKER_STATS = sql('worker:stats')`SELECT stats FROM worker WHERE stats IS NOT NULL`
type TotalMethods = Pick<Store, 'runTotals' | 'targetTotals' | 'workerStats'>

export function totalMethods(db: Database): TotalMethods {
  return {
    runTotals: async () =>
      toRunTotals(db.read((tx) => tx.all<{ status: RunStatus; count: number }>(RUN_TOTALS))),
    targetTotals: async () => toCounts(db.read((tx) => tx.get<CountersRow>(TARGET_TOTALS)!)),
    workerStats: async () =>
      db.read((tx) => tx.many<{ stats: string }>(WORKER_STATS)).map((row) => readJson(row.stats)),
  }
}
