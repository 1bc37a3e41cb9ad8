import { closest } from '../core/model/closest.ts'
import { NotFoundError } from '../core/model/errors.ts'
import type { SavedItem } from '../core/model/item.ts'
import { safeJson, safeText } from '../lib/text/safe-text.ts'
import type { Store } from '../core/store/store.ts'
import { csvLine } from '../lib/text/csv.ts'
import { itemView } from './view.ts'

/** Only one batch is in memory, however many items there are and however slow their reader is. */
const BATCH_SIZE = 200
const FIRST_BATCH_SIZE = 20
const CHUNK_CHARS_MAX = 1_000_000
const CSV_FIELDS = ['key', 'url', 'firstSeenAt', 'lastSeenAt', 'version', 'data'] as const

export const ITEM_FORMATS = ['jsonl', 'csv', 'json'] as const
export type ItemFormat = (typeof ITEM_FORMATS)[number]

type ExportOptions = {
  readonly format: ItemFormat
  /** The key of an item: returns those after it. */
  readonly after?: string | undefined
  /** In a file the text is unchanged; on a terminal its control characters are removed. */
  readonly isTerminal?: boolean
}

/** Yields all items of a source as text, part by part. A part is read only when the one before it was consumed. */
export async function* exportItems(
  store: Store,
  source: string,
  { format: name, after, isTerminal = false }: ExportOptions,
): AsyncGenerator<string, void, void> {
  const format = FORMATS[name]
  const makeLine = format.formatLine(isTerminal)
  let count = 0
  let text = format.header
  for (let [last, size] = [after ?? null, FIRST_BATCH_SIZE]; ;) {
    const batch: SavedItem[] = await store.items(source, last, size)
    for (const item of batch) text += (count++ === 0 ? '' : format.separator) + makeLine(item)
    const { length } = text
    if (text !== '') yield text
    text = ''
    if (batch.length < size) break
    last = batch.at(-1)!.key
    // Items may be large: then fewer are read at once.
    size = length > CHUNK_CHARS_MAX ? Math.max(1, size >> 2) : Math.min(BATCH_SIZE, size * 2)
  }
  yield text + (count === 0 ? '' : format.lastSeparator) + format.footer
}

type FormatSpec = {
  readonly header: string
  readonly formatLine: (isTerminal: boolean) => (item: SavedItem) => string
  readonly separator: string
  readonly lastSeparator: string
  readonly footer: string
}

const FORMATS: Record<ItemFormat, FormatSpec> = {
  jsonl: {
    header: '',
    formatLine: () => (item) => `${safeJson(itemView(item))}\n`,
    separator: '',
    lastSeparator: '',
    footer: '',
  },
  json: {
    header: '{"items":[',
    formatLine: () => (item) => `\n${safeJson(itemView(item))}`,
    separator: ',',
    lastSeparator: '\n',
    footer: '],"next":null}\n',
  },
  csv: {
    header: csvLine(CSV_FIELDS),
    formatLine: (isTerminal) => (item) => {
      const view = { ...itemView(item), data: safeJson(item.data) }
      const cells = CSV_FIELDS.map((field) => view[field] ?? '')
      return csvLine(isTerminal ? cells.map((cell) => safeText(String(cell))) : cells)
    },
    separator: '',
    lastSeparator: '',
    footer: '',
  },
}

/**
 * Returns whether there is any item. A source that has saved nothing yet returns false; an unknown source is
 * refused.
 */
export async function hasItems(store: Store, source: string): Promise<boolean> {
  if ((await store.items(source, null, 1)).length > 0) return true
  if ((await store.runs({ source, limit: 1 })).items.length > 0) return false
  const sources = (await store.runs({ limit: 200 })).items.map((run) => run.source)
  const hint = closest(source, sources)
  throw new NotFoundError(
    `source ${source}`,
    hint ? `Did you mean ${hint}?` : '`unstuck runs` shows the sources there are.',
  )
}
