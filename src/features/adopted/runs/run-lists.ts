import type { Run } from '../../../core/model/run.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { Listing, RunFilter, Store } from '../../../core/store/store.ts'
import { positionOf, readCursor, writeCursor, type Position, type Positions } from './cursor.ts'
import { wordsMeaning } from './reading.ts'
import { createdAtOf, sourceOf } from './row-run.ts'
import type { AdoptedRows } from './rows.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'

/** One of the lists that are merged, as far as it was read. */
type Strand = {
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
  const from = readCursor(filter.after, rows.tables.names)
  const [own, theirs] = await Promise.all([
    ownStrand(store, filter, from),
    rows.tables.ask(
      (table) => strandOf(rows, table, filter, from),
      (mapping) => isAsked(mapping, filter),
    ),
  ])
  const strands = [own, ...theirs]
  const { page, taken } = merge(strands, filter.limit)
  const items = await toRuns(rows, page)
  const isMore = strands.some(
    ({ entries, isLonger }, at) => isLonger || taken[at]! < entries.length,
  )
  return { items, next: isMore ? writeCursor(reached(from, strands, taken)) : null }
}

/** Whether any run of it can be meant at all. */
function isAsked(mapping: AdoptedTable['mapping'], { source }: RunFilter): boolean {
  return source === undefined || source === mapping.name || mapping.columns.source !== undefined
}

async function ownStrand(store: Store, filter: RunFilter, { own }: Positions): Promise<Strand> {
  if (own === null) return { table: null, entries: [], isLonger: false }
  const { items, next } = await store.runs({ ...filter, after: own })
  const entries = items.map((run) => ({ createdAt: run.createdAt, run, position: run.id }))
  return { table: null, entries, isLonger: next !== null }
}

async function strandOf(
  rows: AdoptedRows,
  table: AdoptedTable,
  filter: RunFilter,
  { tables }: Positions,
): Promise<Strand> {
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
    ...(mapping.columns.source !== undefined && { source, orNoSource: source === mapping.name }),
  })
  const listed =
    found.length > 0 || after !== undefined
      ? found
      : [...(await byShortId(rows, table, filter)), ...(await byShownSource(table, filter, words))]
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
  for (const id of await rows.where.ending(search.toLowerCase(), 'run')) {
    const seen = await rows.seeId(id)
    if (seen?.table === table && fits(seen.run, rest)) found.push(seen.row)
  }
  return found
}

/** A source that is no name is shown as one: it is looked for among the rows that were begun last. */
async function byShownSource(
  table: AdoptedTable,
  { source, search, createdSince }: RunFilter,
  words: readonly string[] | undefined,
): Promise<AdoptedRow[]> {
  const { mapping } = table
  if (source === undefined || mapping.columns.source === undefined) return []
  const rows = await table.rows({ words, search, startedSince: createdSince, limit: NEWEST })
  return rows.filter((row) => row.source !== source && sourceOf(mapping, row) === source)
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
  strands: readonly Strand[],
  limit: number,
): { page: readonly Taken[]; taken: readonly number[] } {
  const taken = strands.map(() => 0)
  const page: Taken[] = []
  while (page.length < limit) {
    let best = -1
    for (const [at, { entries }] of strands.entries()) {
      const head = entries[taken[at]!]
      const first = best < 0 ? undefined : strands[best]!.entries[taken[best]!]
      if (head && (!first || head.createdAt > first.createdAt)) best = at
    }
    if (best < 0) break
    page.push({ table: strands[best]!.table, entry: strands[best]!.entries[taken[best]!]! })
    taken[best]!++
  }
  return { page, taken }
}

async function toRuns(rows: AdoptedRows, page: readonly Taken[]): Promise<Run[]> {
  const seen = new Map<Run | AdoptedRow, Run>()
  const byTable = Map.groupBy(page, ({ table }) => table)
  for (const [table, entries] of byTable) {
    const found = entries.map(({ entry }) => entry.run).filter((one) => isRow(one))
    const shown = table && (await rows.tables.askOne(table, () => rows.see(table, found)))
    for (const one of shown ?? []) seen.set(one.row, one.run)
  }
  // What its table cannot tell of any more is left out.
  return page.flatMap(({ entry: { run } }) => (isRow(run) ? (seen.get(run) ?? []) : run))
}

function isRow(one: Run | AdoptedRow): one is AdoptedRow {
  return 'stamp' in one
}

/** Where each part stands after the page. */
function reached(from: Positions, strands: readonly Strand[], taken: readonly number[]): Positions {
  let { own } = from
  const tables: Record<string, Position | null> = { ...from.tables }
  for (const [at, { table, entries, isLonger }] of strands.entries()) {
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
  const newest = await rows.tables.ask(async (table) => {
    if (table.mapping.kind === 'targets') return [await rows.whole(table)]
    const bySource = new Map<string, AdoptedRow>()
    for (const row of await table.rows({ limit: NEWEST })) {
      const source = sourceOf(table.mapping, row)
      if (!bySource.has(source)) bySource.set(source, row)
    }
    const seen = await rows.see(table, [...bySource.values()])
    return seen.map(({ run }) => run)
  })
  return newest.flat().filter(({ status }) => status === 'failed')
}
