import { csvLine } from '../lib/text/csv.ts'
import { safeJson, safeText } from '../lib/text/safe-text.ts'
import type { SavedItem } from '../features/items/store/store.ts'
import { itemView } from './view.ts'

/** Columns that every CSV file of items has, before those of its data. */
const FIXED = ['key', 'url', 'run', 'group', 'firstSeenAt', 'changedAt', 'lastSeenAt'] as const
/** The fields that have no column, as JSON. */
const REST = '_more'
const COLUMNS_MAX = 500

/** The columns of a CSV file of items. */
export type ItemColumns = {
  /** Fields of the data, each with the title of its column. */
  readonly fields: ReadonlyMap<string, string>
  readonly hasDataset: boolean
  readonly hasRest: boolean
}

/** Chooses one column per field of the data of these items. `isMore`: more items follow, with fields not known yet. */
export function chooseColumns(items: readonly SavedItem[], isMore: boolean): ItemColumns {
  const names = new Set(items.flatMap(({ data }) => [...fieldsOf(data).keys()]))
  const hasDataset = items.some(({ dataset }) => dataset !== null)
  const titles = new Set<string>([...FIXED, 'dataset', REST])
  const fields = new Map<string, string>()
  for (const name of [...names].slice(0, COLUMNS_MAX)) {
    let title = name
    while (titles.has(title)) title = `data.${title}`
    titles.add(title)
    fields.set(name, title)
  }
  return { fields, hasDataset, hasRest: isMore || names.size > COLUMNS_MAX }
}

export function formatHeader(columns: ItemColumns, isTerminal: boolean): string {
  const { fields, hasDataset, hasRest } = columns
  const titles = [...FIXED, ...(hasDataset ? ['dataset'] : []), ...fields.values()]
  return line([...titles, ...(hasRest ? [REST] : [])], isTerminal)
}

export function formatRow(item: SavedItem, columns: ItemColumns, isTerminal: boolean): string {
  const view = itemView(item)
  const values = fieldsOf(item.data)
  const cells = FIXED.map((name): string | number => view[name] ?? '')
  if (columns.hasDataset) cells.push(view.dataset ?? '')
  for (const name of columns.fields.keys()) cells.push(cell(values.get(name)))
  if (columns.hasRest) {
    const rest = [...values].filter(([name]) => !columns.fields.has(name))
    cells.push(rest.length === 0 ? '' : safeJson(Object.fromEntries(rest)))
  }
  return line(cells, isTerminal)
}

/** Data that is no object is one field, `data`. */
export function fieldsOf(data: unknown): ReadonlyMap<string, unknown> {
  const isObject = typeof data === 'object' && data !== null && !Array.isArray(data)
  return isObject ? new Map(Object.entries(data)) : new Map([['data', data]])
}

function cell(value: unknown): string | number {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string' || typeof value === 'number') return value
  return safeJson(value)
}

function line(cells: readonly (string | number)[], isTerminal: boolean): string {
  return csvLine(isTerminal ? cells.map((one) => safeText(String(one))) : cells)
}
