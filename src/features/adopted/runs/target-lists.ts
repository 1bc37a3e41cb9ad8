import type { RunId } from '../../../core/model/id.ts'
import type { Counts, Run } from '../../../core/model/run.ts'
import { TROUBLED_STATUSES, type Target, type TroubledStatus } from '../../../core/model/target.ts'
import type {
  DeadLetter,
  DeadLetterFilter,
  Listing,
  Store,
  TargetFilter,
} from '../../../core/store/store.ts'
import { positionOf, readCursor, writeCursor, type Position } from './cursor.ts'
import { allRows, wordsMeaning } from './reading.ts'
import { countsOf, sumOf, type Seen } from './row-run.ts'
import type { AdoptedRows } from './rows.ts'
import type { AdoptedTable } from '../table/table.ts'

/** The targets of a run that is a row, or a table. */
export async function listTargets(
  rows: AdoptedRows,
  run: RunId,
  filter: TargetFilter,
): Promise<Listing<Target>> {
  const whole = await wholeOf(rows, run)
  if (!whole) {
    const seen = await rows.seeId(run)
    return { items: seen && fits(seen.target, filter) ? [seen.target] : [], next: null }
  }
  const { table } = whole
  const { seen, next } = await pageOf(rows, whole, filter)
  return {
    items: seen.map(({ target }) => target),
    next: next && writeCursor({ tables: { [table.mapping.name]: next } }),
  }
}

type Whole = { readonly table: AdoptedTable; readonly run: Run }

/** The table that is this run; null when it is a row. */
async function wholeOf(rows: AdoptedRows, id: RunId): Promise<Whole | null> {
  const found = await rows.where.find(id)
  if (found?.table.mapping.kind !== 'targets') return null
  return { table: found.table, run: await rows.whole(found.table) }
}

async function pageOf(
  rows: AdoptedRows,
  { table, run }: Whole,
  { statuses, group, search, after, limit }: TargetFilter,
): Promise<{ seen: Seen[]; next: Position | null }> {
  const { name } = table.mapping
  const from = readCursor(after, [name]).tables[name]
  const words = statuses?.length ? await wordsMeaning(table, statuses) : undefined
  if (from === null || words?.length === 0) return { seen: [], next: null }
  const found = await table.rows({ words, group, search, after: from, limit: limit + 1 })
  const page = found.slice(0, limit)
  const next = found.length > limit ? positionOf(page.at(-1)!) : null
  return { seen: await rows.see(table, page, run), next }
}

function fits(target: Target, { statuses, group, search, after }: TargetFilter): boolean {
  const part = search?.toLowerCase()
  return (
    after === undefined &&
    (!statuses?.length || statuses.includes(target.status)) &&
    (group === undefined || group === (target.group ?? '')) &&
    (part === undefined ||
      target.key.toLowerCase().includes(part) ||
      (target.lastError?.toLowerCase().includes(part) ?? false))
  )
}

/** Reads the table: for people, not for loops. */
export async function countsByPage(
  rows: AdoptedRows,
  run: RunId,
): Promise<{ page: number; targets: number }[]> {
  const pages = new Map<number, number>()
  for (const { page } of await allTargets(rows, run)) pages.set(page, (pages.get(page) ?? 0) + 1)
  return [...pages].map(([page, targets]) => ({ page, targets })).sort((a, b) => a.page - b.page)
}

async function allTargets(rows: AdoptedRows, run: RunId): Promise<Target[]> {
  const whole = await wholeOf(rows, run)
  const found = whole
    ? await rows.see(whole.table, await allRows(whole.table, {}), whole.run)
    : [await rows.seeId(run)]
  return found.flatMap((seen) => (seen ? [seen.target] : []))
}

export async function countsByGroup(
  rows: AdoptedRows,
  run: RunId,
): Promise<{ group: string | null; counts: Counts }[]> {
  const whole = await wholeOf(rows, run)
  if (!whole) {
    const seen = await rows.seeId(run)
    return seen ? [{ group: null, counts: seen.run.counts }] : []
  }
  const { table } = whole
  const groups = Map.groupBy(await table.counts(), ({ group }) => group)
  return [...groups]
    .map(([group, counts]) => ({ group, counts: countsOf(sumOf(table.mapping, counts)) }))
    .sort((a, b) => ((a.group ?? '') < (b.group ?? '') ? -1 : 1))
}

/** Our own first, then those of each table. */
export async function listDeadLetters(
  store: Store,
  rows: AdoptedRows,
  filter: DeadLetterFilter,
): Promise<Listing<DeadLetter>> {
  const { source, after, limit } = filter
  const tables = (await rows.tables.usable()).filter(
    ({ mapping }) =>
      mapping.kind === 'targets' && (source === undefined || source === mapping.name),
  )
  if (tables.length === 0) return store.deadLetters(filter)
  let positions = readCursor(after, [])
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
    const page = await rows.tables.askOne(table, () =>
      lettersIn(rows, table, positions.tables[name], rest),
    )
    items.push(...(page?.items ?? []))
    positions = { own: null, tables: { ...positions.tables, [name]: page?.next ?? null } }
  }
  const isOver = tables.every(({ mapping }) => positions.tables[mapping.name] === null)
  return { items, next: isOver ? null : writeCursor(positions) }
}

async function lettersIn(
  rows: AdoptedRows,
  table: AdoptedTable,
  after: Position | null | undefined,
  { statuses, limit }: DeadLetterFilter,
): Promise<{ items: DeadLetter[]; next: Position | null }> {
  const words = await wordsMeaning(table, statuses?.length ? statuses : TROUBLED_STATUSES)
  if (after === null || words.length === 0) return { items: [], next: null }
  const found = await table.rows({ words, after, limit: limit + 1 })
  const page = found.slice(0, limit)
  const seen = await rows.see(table, page, await rows.whole(table))
  return {
    items: seen.map(toLetter),
    next: found.length > limit ? positionOf(page.at(-1)!) : null,
  }
}

function toLetter({ target, run }: Seen): DeadLetter {
  return {
    id: target.id,
    key: target.key,
    run: run.id,
    source: run.source,
    status: target.status as TroubledStatus,
    error: target.lastError ?? '',
    at: target.finishedAt ?? target.lastActivityAt,
  }
}
