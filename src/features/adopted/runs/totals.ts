import type { Counts, RunStatus } from '../../../core/model/run.ts'
import { TARGET_STATUSES } from '../../../core/model/target.ts'
import type { Store } from '../../../core/store/store.ts'
import type { Mapping } from '../mapping.ts'
import { countByTargetStatus } from './row-run.ts'
import type { AdoptedRows } from './rows.ts'
import { runStatusOf } from './status-mapping.ts'

/** Our own and those of the tables, by status. */
export async function runTotals(
  store: Store,
  rows: AdoptedRows,
): Promise<Record<RunStatus, number>> {
  const totals = { ...(await store.runTotals()) }
  await rows.tables.queryAll(async (table) => {
    if (table.mapping.kind === 'targets') {
      const { status } = await rows.tableRun(table)
      totals[status]++
      return
    }
    for (const { word, count } of await table.counts())
      totals[runStatusOf(table.mapping, word)] += count
  })
  return totals
}

/** With the rows of tables of targets. A row that is a run is counted as one. */
export async function targetTotals(store: Store, rows: AdoptedRows): Promise<Counts> {
  const own = await store.targetTotals()
  const targets = { ...own.targets }
  const isTargetTable = ({ kind }: Mapping): boolean => kind === 'targets'
  await rows.tables.queryAll(async (table) => {
    const sum = countByTargetStatus(table.mapping, await table.counts())
    for (const status of TARGET_STATUSES) targets[status] += sum[status] ?? 0
  }, isTargetTable)
  return { ...own, targets }
}
