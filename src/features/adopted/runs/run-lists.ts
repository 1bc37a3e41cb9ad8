import type { Run } from '../../../core/model/run.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { Listing, RunFilter, Store } from '../../../core/store/store.ts'
import {
  positionOf,
  decodeCursor,
  encodeCursor,
  type ListPosition,
  type ListPositions,
} from './cursor.ts'
import type { MappedValue } from '../mapping.ts'
import { statusValuesIn } from './row-queries.ts'
import { createdAtOf, sourceOf } from './row-run.ts'
import type { AdoptedRows } from './rows.ts'
import { tableRunsWithDeadLetters } from './target-lists.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'

/** A page of one of the merged lists. */
type SourcePage = {
  /** Null: the store's own runs. */
  readonly table: AdoptedTable | null
  readonly entries: readonly Entry[]
  /** More entries follow. */
  readonly hasMore: boolean
}

type Entry = {
  readonly createdAt: Millis
  /** A row becomes a run only if it is on the page, since that may call the user's functions. */
  readonly run: Run | AdoptedRow
  readonly position: string | ListPosition
}

/** Lists runs of the store and of all tables, newest first. Each part has its own position, so that no run is missed or listed twice. */
export async function listRuns(
  store: Store,
  rows: AdoptedRows,
  filter: RunFilter,
): Promise<Listing<Run>> {
  if (filter.latestFailed) {
    const failed = [...(await store.runs(filter)).items, ...(await latestFailedRuns(rows))]
    return { items: failed.sort((a, b) => b.createdAt - a.createdAt), next: null }
  }
  if (filter.deadLetters) {
    const own = await store.runs(filter)
    if (own.next !== null) return own
    return { items: [...own.items, ...(await tableRunsWithDeadLetters(rows, filter))], next: null }
  }
  const from = decodeCursor(filter.after, rows.tables.names)
  const [own, theirs] = await Promise.all([
    ownPage(store, filter, from),
    rows.tables.queryAll(
      (table) => tablePage(rows, table, filter, from),
      (mapping) => canMatch(mapping, filter),
    ),
  ])
  const pages = [own, ...theirs]
  const { page, taken } = merge(pages, filter.limit)
  const items = await toRuns(rows, page)
  const isMore = pages.some(({ entries, hasMore }, at) => hasMore || taken[at]! < entries.length)
  return { items, next: isMore ? encodeCursor(advance(from, pages, taken)) : null }
}

/** Returns whether the table can have a run of this source. */
function canMatch(mapping: AdoptedTable['mapping'], { source }: RunFilter): boolean {
  return source === undefined || source === mapping.name || mapping.columns.source !== undefined
}

async function ownPage(
  store: Store,
  filter: RunFilter,
  { own }: ListPositions,
): Promise<SourcePage> {
  if (own === null) return { table: null, entries: [], hasMore: false }
  const { items, next } = await store.runs({ ...filter, after: own })
  const entries = items.map((run) => ({ createdAt: run.createdAt, run, position: run.id }))
  return { table: null, entries, hasMore: next !== null }
}

async function tablePage(
  rows: AdoptedRows,
  table: AdoptedTable,
  filter: RunFilter,
  { tables }: ListPositions,
): Promise<SourcePage> {
  const { mapping } = table
  const none = { table, entries: [], hasMore: false }
  const after = tables[mapping.name]
  if (after === null) return none
  if (mapping.kind === 'targets') {
    const run = await rows.tableRun(table)
    const position = { listedAt: null, key: '' }
    return matchesFilter(run, filter)
      ? { ...none, entries: [{ createdAt: run.createdAt, run, position }] }
      : none
  }
  const { source, statuses, search, createdSince, limit } = filter
  const statusValues = statuses?.length ? await statusValuesIn(table, statuses) : undefined
  if (statusValues?.length === 0) return none
  const found = await table.rows({
    limit: limit + 1,
    statusValues,
    after,
    search,
    since: createdSince,
    ...(mapping.columns.source !== undefined && { source, orNoSource: source === mapping.name }),
  })
  const listed =
    found.length > 0 || after !== undefined
      ? found
      : [
          ...(await byShortId(rows, table, filter)),
          ...(await bySanitizedSource(table, filter, statusValues)),
        ]
  const { now } = await table.clock()
  const entries = listed.slice(0, limit).map((row) => ({
    createdAt: createdAtOf(row, now),
    run: row,
    position: positionOf(row),
  }))
  return { table, entries, hasMore: listed.length > limit }
}

/** Finds rows by the end of their id, which is not in the table. */
async function byShortId(
  rows: AdoptedRows,
  table: AdoptedTable,
  { search, ...rest }: RunFilter,
): Promise<AdoptedRow[]> {
  if (search === undefined || !/^[0-9a-f-]{8,36}$/i.test(search)) return []
  const found: AdoptedRow[] = []
  for (const id of await rows.locator.idsEnding(search.toLowerCase(), 'run')) {
    const resolved = await rows.resolveId(id)
    if (resolved?.table === table && matchesFilter(resolved.run, rest)) found.push(resolved.row)
  }
  return found
}

/** Finds rows by their sanitized source among the newest ones, because the table has only the original. */
async function bySanitizedSource(
  table: AdoptedTable,
  { source, search, createdSince }: RunFilter,
  statusValues: readonly MappedValue[] | undefined,
): Promise<AdoptedRow[]> {
  const { mapping } = table
  if (source === undefined || mapping.columns.source === undefined) return []
  const rows = await table.rows({
    statusValues,
    search,
    since: createdSince,
    limit: NEWEST_MAX,
  })
  return rows.filter((row) => row.source !== source && sourceOf(mapping, row) === source)
}

/** Checks a run without a query. */
function matchesFilter(run: Run, { source, statuses, search, createdSince }: RunFilter): boolean {
  const part = search?.toLowerCase()
  return (
    (source === undefined || source === run.source) &&
    (!statuses?.length || statuses.includes(run.status)) &&
    (createdSince === undefined || run.createdAt >= createdSince) &&
    (part === undefined || run.source.toLowerCase().includes(part) || run.id.endsWith(part))
  )
}

type MergedEntry = { readonly table: AdoptedTable | null; readonly entry: Entry }

function merge(
  pages: readonly SourcePage[],
  limit: number,
): { page: readonly MergedEntry[]; taken: readonly number[] } {
  const taken = pages.map(() => 0)
  const page: MergedEntry[] = []
  while (page.length < limit) {
    let best = -1
    for (const [at, { entries }] of pages.entries()) {
      const head = entries[taken[at]!]
      const first = best < 0 ? undefined : pages[best]!.entries[taken[best]!]
      if (head && (!first || head.createdAt > first.createdAt)) best = at
    }
    if (best < 0) break
    page.push({ table: pages[best]!.table, entry: pages[best]!.entries[taken[best]!]! })
    taken[best]!++
  }
  return { page, taken }
}

async function toRuns(rows: AdoptedRows, page: readonly MergedEntry[]): Promise<Run[]> {
  const resolved = new Map<Run | AdoptedRow, Run>()
  const byTable = Map.groupBy(page, ({ table }) => table)
  for (const [table, entries] of byTable) {
    const found = entries.map(({ entry }) => entry.run).filter((one) => isRow(one))
    const resolvedRows = table && (await rows.tables.query(table, () => rows.resolve(table, found)))
    for (const one of resolvedRows ?? []) resolved.set(one.row, one.run)
  }
  // Rows of a table that has become unreadable are left out.
  return page.flatMap(({ entry: { run } }) => (isRow(run) ? (resolved.get(run) ?? []) : run))
}

function isRow(one: Run | AdoptedRow): one is AdoptedRow {
  return 'snapshot' in one
}

/** Returns the position of each part after the page. */
function advance(
  start: ListPositions,
  pages: readonly SourcePage[],
  taken: readonly number[],
): ListPositions {
  let { own } = start
  const tables: Record<string, ListPosition | null> = { ...start.tables }
  for (const [at, { table, entries, hasMore }] of pages.entries()) {
    const last = entries[taken[at]! - 1]
    const isOver = taken[at] === entries.length && !hasMore
    if (!last && !isOver) continue
    if (table) tables[table.mapping.name] = isOver ? null : (last!.position as ListPosition)
    else own = isOver ? null : (last!.position as string)
  }
  return { own, tables }
}

const NEWEST_MAX = 500

/** Returns the newest run of each source if it failed, among the newest rows. */
async function latestFailedRuns(rows: AdoptedRows): Promise<Run[]> {
  const newest = await rows.tables.queryAll(async (table) => {
    if (table.mapping.kind === 'targets') return [await rows.tableRun(table)]
    const bySource = new Map<string, AdoptedRow>()
    for (const row of await table.rows({ limit: NEWEST_MAX })) {
      const source = sourceOf(table.mapping, row)
      if (!bySource.has(source)) bySource.set(source, row)
    }
    const resolved = await rows.resolve(table, [...bySource.values()])
    return resolved.map(({ run }) => run)
  })
  return newest.flat().filter(({ status }) => status === 'failed')
}
