import type { Run } from '../../model/run.ts'
import type { Millis } from '../../model/time.ts'
import type { Listing, RunFilter, Store } from '../../store/store.ts'
import { positionOf, readCursor, writeCursor, type Position, type Positions } from './cursor.ts'
import { wordsMeaning } from './reading.ts'
import { createdAtOf, sourceOf } from './row-run.ts'
import type { AdoptedRows } from './rows.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'

/** One of the lists that are merged, as far as it was read. */
type Part = {
  /** Null: our own. */
  readonly table: AdoptedTable | null
  readonly entries: readonly Entry[]
  /** There is more behind what was read. */
  readonly isLonger: boolean
}

type Entry = {
  readonly createdAt: Millis
  /** A row is made a run only when it is on the page: that may take a question to its owner. */
  readonly run: Run | AdoptedRow
  readonly position: string | Position
}

/** Newest first over our own runs and all tables. Each part is read on from where it stood, so nothing is left out or doubled. */
export async function listRuns(
  store: Store,
  rows: AdoptedRows,
  filter: RunFilter,
): Promise<Listing<Run>> {
  const asked = (await rows.tables()).filter(({ mapping }) => isAsked(mapping, filter))
  if (asked.length === 0) return store.runs(filter)
  const from = readCursor(
    filter.after,
    asked.map(({ mapping }) => mapping.name),
  )
  const parts = await Promise.all([
    ownPart(store, filter, from),
    ...asked.map((table) => tablePart(rows, table, filter, from)),
  ])
  const { page, taken } = merge(parts, filter.limit)
  const items = await toRuns(rows, page)
  const isMore = parts.some(({ entries, isLonger }, at) => isLonger || taken[at]! < entries.length)
  return { items, next: isMore ? writeCursor(reached(from, parts, taken)) : null }
}

/** Whether any run of it can be meant at all. */
function isAsked(mapping: AdoptedTable['mapping'], { source }: RunFilter): boolean {
  return source === undefined || source === mapping.name || mapping.columns.source !== undefined
}

async function ownPart(store: Store, filter: RunFilter, { own }: Positions): Promise<Part> {
  if (own === null) return { table: null, entries: [], isLonger: false }
  const { items, next } = await store.runs({ ...filter, after: own })
  const entries = items.map((run) => ({ createdAt: run.createdAt, run, position: run.id }))
  return { table: null, entries, isLonger: next !== null }
}

async function tablePart(
  rows: AdoptedRows,
  table: AdoptedTable,
  filter: RunFilter,
  { tables }: Positions,
): Promise<Part> {
  const { mapping } = table
  const none = { table, entries: [], isLonger: false }
  const after = tables[mapping.name]
  if (after === null) return none
  if (mapping.kind === 'targets') {
    const run = await rows.whole(table)
    const position = { startedAt: null, key: '' }
    return fits(run, filter)
      ? { ...none, entries: [{ createdAt: run.createdAt, run, position }] }
      : none
  }
  const { source, statuses, search, createdSince, limit } = filter
  const words = statuses?.length ? await wordsMeaning(table, statuses) : undefined
  if (words?.length === 0) return none
  const found = await table.rows({
    limit: limit + 1,
    words,
    after,
    search,
    startedSince: createdSince,
    ...(mapping.columns.source !== undefined && { source }),
  })
  const listed =
    found.length === 0 && after === undefined ? await byShortId(rows, table, filter) : found
  const { now } = await table.clock()
  const entries = listed.slice(0, limit).map((row) => ({
    createdAt: createdAtOf(row, now),
    run: row,
    position: positionOf(row),
  }))
  return { table, entries, isLonger: listed.length > limit }
}

/** What a person typed may be the end of an id that the row has with us alone. */
async function byShortId(
  rows: AdoptedRows,
  table: AdoptedTable,
  { search, ...rest }: RunFilter,
): Promise<AdoptedRow[]> {
  if (search === undefined || !/^[0-9a-f-]{8,36}$/i.test(search)) return []
  const found: AdoptedRow[] = []
  for (const id of await rows.ending(search.toLowerCase(), 'run')) {
    const seen = await rows.seeId(id)
    if (seen?.table === table && fits(seen.run, rest)) found.push(seen.row)
  }
  return found
}

/** Without a question to the table. */
function fits(run: Run, { source, statuses, search, createdSince }: RunFilter): boolean {
  const part = search?.toLowerCase()
  return (
    (source === undefined || source === run.source) &&
    (!statuses?.length || statuses.includes(run.status)) &&
    (createdSince === undefined || run.createdAt >= createdSince) &&
    (part === undefined || run.source.toLowerCase().includes(part) || run.id.endsWith(part))
  )
}

type Taken = { readonly table: AdoptedTable | null; readonly entry: Entry }

function merge(
  parts: readonly Part[],
  limit: number,
): { page: readonly Taken[]; taken: readonly number[] } {
  const taken = parts.map(() => 0)
  const page: Taken[] = []
  while (page.length < limit) {
    let best = -1
    for (const [at, { entries }] of parts.entries()) {
      const head = entries[taken[at]!]
      const first = best < 0 ? undefined : parts[best]!.entries[taken[best]!]
      if (head && (!first || head.createdAt > first.createdAt)) best = at
    }
    if (best < 0) break
    page.push({ table: parts[best]!.table, entry: parts[best]!.entries[taken[best]!]! })
    taken[best]!++
  }
  return { page, taken }
}

async function toRuns(rows: AdoptedRows, page: readonly Taken[]): Promise<Run[]> {
  const seen = new Map<AdoptedRow, Run>()
  const byTable = Map.groupBy(page, ({ table }) => table)
  for (const [table, entries] of byTable) {
    const found = entries.map(({ entry }) => entry.run).filter((one) => isRow(one))
    if (table) for (const one of await rows.see(table, found)) seen.set(one.row, one.run)
  }
  return page.map(({ entry: { run } }) => (isRow(run) ? seen.get(run)! : run))
}

function isRow(one: Run | AdoptedRow): one is AdoptedRow {
  return 'stamp' in one
}

/** Where each part stands after the page. */
function reached(from: Positions, parts: readonly Part[], taken: readonly number[]): Positions {
  let { own } = from
  const tables: Record<string, Position | null> = { ...from.tables }
  for (const [at, { table, entries, isLonger }] of parts.entries()) {
    const last = entries[taken[at]! - 1]
    const isOver = taken[at] === entries.length && !isLonger
    if (!last && !isOver) continue
    if (table) tables[table.mapping.name] = isOver ? null : (last!.position as Position)
    else own = isOver ? null : (last!.position as string)
  }
  return { own, tables }
}

const NEWEST = 500

/** The newest row of each source, where that one failed: of the rows that were begun last. */
export async function lastFailedRows(rows: AdoptedRows): Promise<Run[]> {
  const failed: Run[] = []
  for (const table of await rows.tables()) {
    if (table.mapping.kind === 'targets') {
      const run = await rows.whole(table)
      if (run.status === 'failed') failed.push(run)
      continue
    }
    const newest = new Map<string, AdoptedRow>()
    for (const row of await table.rows({ limit: NEWEST })) {
      const source = sourceOf(table.mapping, row)
      if (!newest.has(source)) newest.set(source, row)
    }
    const seen = await rows.see(table, [...newest.values()])
    failed.push(...seen.map(({ run }) => run).filter(({ status }) => status === 'failed'))
  }
  return failed
}
