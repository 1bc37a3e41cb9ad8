import type { RunStatus } from '../../model/run.ts'
import { toCounts, type CountersRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { toRunTotals } from '../list-rows.ts'
import { sql, type Database } from './database.ts'
import { SUMS } from './counters.ts'

const RUN_TOTALS = sql('totals:runs')`
  SELECT status, count(*)::int AS count FROM unstuck.run GROUP BY status
`
const TARGET_TOTALS = sql('totals:targets')`SELECT ${SUMS} FROM unstuck.run_counters t`
const WORKER_STATS = sql('worker:stats')`SELECT stats FROM unstuck.worker WHERE stats IS NOT NULL`
type TotalMethods = Pick<Store, 'runTotals' | 'targetTotals' | 'workerStats'>

export function totalMethods(db: Database): TotalMethods {
  return {
    runTotals: async () =>
      toRunTotals(await db.all<{ status: RunStatus; count: number }>(RUN_TOTALS)),
    targetTotals: async () => toCounts((await db.all<CountersRow>(TARGET_TOTALS))[0]!),
    workerStats: async () =>
      (await db.all<{ stats: unknown }>(WORKER_STATS)).map(({ stats }) => stats),
  }
}
