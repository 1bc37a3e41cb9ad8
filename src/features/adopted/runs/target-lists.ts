import type { Counts, Run, RunStatus } from '../../../core/model/run.ts'
import {
  DEAD_LETTER_STATUSES,
  type DeadLetterStatus,
  type Target,
  TARGET_STATUSES,
} from '../../../core/model/target.ts'
import type {
  DeadLetter,
  DeadLetterFilter,
  Listing,
  RunFilter,
  Store,
  TargetFilter,
} from '../../../core/store/store.ts'
import type { Mapping } from '../mapping.ts'
import { countByTargetStatus, type ResolvedRow, rowCounts } from './row-run.ts'
import type { AdoptedRows } from './rows.ts'
import { runStatusOf } from './status-mapping.ts'
import type { RunId } from '../../../core/model/id.ts'
import { decodeCursor, encodeCursor, positionOf, type ListPosition } from './cursor.ts'
import { allRows, readPage, statusValuesIn } from './row-queries.ts'
import type { AdoptedTable } from '../table/table.ts'

/** Lists the targets of a row or of a whole table. */
export async function listTargets(
  rows: AdoptedRows,
  run: RunId,
  filter: TargetFilter,
): Promise<Listing<Target>> {
  const tableRun = await findTableRun(rows, run)
  if (!tableRun) {
    const resolved = await rows.resolveId(run)
    return {
      items: resolved && matchesFilter(resolved.target, filter) ? [resolved.target] : [],
      next: null,
    }
  }
  const { table } = tableRun
  const { resolved, next } = await tablePage(rows, tableRun, filter)
  return {
    items: resolved.map(({ target }) => target),
    next: next && encodeCursor({ tables: { [table.mapping.name]: next } }),
  }
}

type TableRun = { readonly table: AdoptedTable; readonly run: Run }

/** Returns the table with this run; null if the run is a row. */
async function findTableRun(rows: AdoptedRows, id: RunId): Promise<TableRun | null> {
  const found = await rows.locator.find(id)
  if (found?.table.mapping.kind !== 'targets') return null
  return { table: found.table, run: await rows.tableRun(found.table) }
}

/** Rows that are read at once where the first page had too few that are, or are not, acknowledged. */
const MARKED_PAGE_SIZE = 500

async function tablePage(
  rows: AdoptedRows,
  { table, run }: TableRun,
  { statuses, group, search, acknowledged, after, limit }: TargetFilter,
): Promise<{ resolved: ResolvedRow[]; next: ListPosition | null }> {
  const { name } = table.mapping
  const statusValues = statuses?.length ? await statusValuesIn(table, statuses) : undefined
  if (statusValues?.length === 0) return { resolved: [], next: null }
  let next: ListPosition | null | undefined = decodeCursor(after, [name]).tables[name]
  const found: ResolvedRow[] = []
  for (let size = limit; next !== null && found.length < limit; size = MARKED_PAGE_SIZE) {
    const filter = { statusValues, group, search, after: next, limit: size }
    const { page, next: following } = await readPage(table, filter)
    const resolved = await rows.resolve(table, page, run)
    found.push(...resolved.filter(({ target }) => isMarked(target, acknowledged)))
    next = following
  }
  const resolved = found.slice(0, limit)
  return { resolved, next: found.length > limit ? positionOf(resolved.at(-1)!.row) : next! }
}

/** Marks are not in the user's table. Undefined: either. */
function isMarked({ acknowledgedAt }: Target, acknowledged: boolean | undefined): boolean {
  return acknowledged === undefined || acknowledged === (acknowledgedAt !== null)
}

function matchesFilter(target: Target, filter: TargetFilter): boolean {
  const { statuses, group, search, acknowledged, after } = filter
  const part = search?.toLowerCase()
  return (
    after === undefined &&
    isMarked(target, acknowledged) &&
    (!statuses?.length || statuses.includes(target.status)) &&
    (group === undefined || group === (target.group ?? '')) &&
    (part === undefined ||
      target.key.toLowerCase().includes(part) ||
      (target.lastError?.toLowerCase().includes(part) ?? false))
  )
}

/** Counts the targets by page. Reads the whole table, so no periodic job may call it. */
export async function countsByPage(
  rows: AdoptedRows,
  run: RunId,
): Promise<{ page: number; targets: number }[]> {
  const pages = new Map<number, number>()
  for (const { page } of await allTargets(rows, run)) pages.set(page, (pages.get(page) ?? 0) + 1)
  return [...pages].map(([page, targets]) => ({ page, targets })).sort((a, b) => a.page - b.page)
}

async function allTargets(rows: AdoptedRows, run: RunId): Promise<Target[]> {
  const tableRun = await findTableRun(rows, run)
  const found = tableRun
    ? await rows.resolve(tableRun.table, await allRows(tableRun.table, {}), tableRun.run)
    : [await rows.resolveId(run)]
  return found.flatMap((resolved) => (resolved ? [resolved.target] : []))
}

export async function countsByGroup(
  rows: AdoptedRows,
  run: RunId,
): Promise<{ group: string | null; counts: Counts }[]> {
  const tableRun = await findTableRun(rows, run)
  if (!tableRun) {
    const resolved = await rows.resolveId(run)
    return resolved ? [{ group: null, counts: resolved.run.counts }] : []
  }
  const { table } = tableRun
  const groups = Map.groupBy(await table.counts(), ({ group }) => group)
  return [...groups]
    .map(([group, counts]) => ({
      group,
      counts: rowCounts(countByTargetStatus(table.mapping, counts)),
    }))
    .sort((a, b) => ((a.group ?? '') < (b.group ?? '') ? -1 : 1))
}

/** Lists dead letters of the store, then those of each table. */
export async function listDeadLetters(
  store: Store,
  rows: AdoptedRows,
  filter: DeadLetterFilter,
): Promise<Listing<DeadLetter>> {
  const { source, after, limit } = filter
  const tables = (await rows.tables.available()).filter(
    ({ mapping }) =>
      mapping.kind === 'targets' && (source === undefined || source === mapping.name),
  )
  if (tables.length === 0) return store.deadLetters(filter)
  let positions = decodeCursor(after, [])
  const items: DeadLetter[] = []
  if (positions.own !== null) {
    const page = await store.deadLetters({ ...filter, after: positions.own })
    items.push(...page.items)
    positions = { ...positions, own: page.next }
  }
  for (const table of tables) {
    const { name } = table.mapping
    if (positions.own !== null || items.length === limit) break
    const rest = { ...filter, limit: limit - items.length }
    const page = await rows.tables.query(table, () =>
      tableDeadLetters(rows, table, positions.tables[name], rest),
    )
    items.push(...(page?.items ?? []))
    positions = { own: null, tables: { ...positions.tables, [name]: page?.next ?? null } }
  }
  const isComplete = tables.every(({ mapping }) => positions.tables[mapping.name] === null)
  return { items, next: isComplete ? null : encodeCursor(positions) }
}

async function tableDeadLetters(
  rows: AdoptedRows,
  table: AdoptedTable,
  after: ListPosition | null | undefined,
  { statuses, acknowledged, limit }: DeadLetterFilter,
): Promise<{ items: DeadLetter[]; next: ListPosition | null }> {
  const statusValues = await statusValuesIn(
    table,
    statuses?.length ? statuses : DEAD_LETTER_STATUSES,
  )
  if (after === null || statusValues.length === 0) return { items: [], next: null }
  const { page, next } = await readPage(table, { statusValues, after, limit })
  const resolved = await rows.resolve(table, page, await rows.tableRun(table))
  const meant = resolved.filter(({ target }) => isMarked(target, acknowledged))
  return { items: meant.map(toDeadLetter), next }
}

function toDeadLetter({ target, run }: ResolvedRow): DeadLetter {
  return {
    id: target.id,
    key: target.key,
    run: run.id,
    source: run.source,
    status: target.status as DeadLetterStatus,
    error: target.lastError ?? '',
    at: target.finishedAt ?? target.lastActivityAt,
    ...(target.origin && { origin: target.origin }),
  }
}

/** Returns the tables with a row that failed, is stuck or parked, and that is acknowledged, or is not. */
export async function tableRunsWithDeadLetters(
  rows: AdoptedRows,
  { source, deadLetters }: RunFilter,
): Promise<Run[]> {
  const acknowledged = deadLetters === 'acknowledged'
  const filter = { statuses: DEAD_LETTER_STATUSES, acknowledged, limit: 1 }
  const found = await rows.tables.queryAll(
    async (table) => {
      const run = await rows.tableRun(table)
      const { resolved } = await tablePage(rows, { table, run }, filter)
      return resolved.length > 0 ? [run] : []
    },
    ({ kind, name }) => kind === 'targets' && (source === undefined || source === name),
  )
  return found.flat()
}

/** Counts the runs of the store and of the tables by status. */
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
    for (const one of await table.counts()) totals[runStatusOf(table.mapping, one)] += one.count
  })
  return totals
}

/** Counts the targets of the store and of tables of targets. Rows that are runs are not counted. */
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
