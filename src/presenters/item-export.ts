import { safeJson } from '../lib/text/safe-text.ts'
import type { Store } from '../core/store/store.ts'
import type { SavedItem } from '../features/items/store/store.ts'
import { chooseColumns, formatHeader, formatRow, type ItemColumns } from './item-columns.ts'
import { BatchSize, cutPart, itemParts, type ItemQuery } from './items.ts'
import { itemView } from './view.ts'

export const ITEM_FORMATS = ['jsonl', 'csv', 'json'] as const
export type ItemFormat = (typeof ITEM_FORMATS)[number]

const CHUNK_CHARS_MAX = 1_000_000
/** What is read before the columns of a CSV file are chosen. */
const SAMPLE_ITEMS = 1_000
const SAMPLE_CHARS_MAX = 8_000_000

type ExportOptions = {
  readonly format: ItemFormat
  /** @default all */
  readonly limit?: number | undefined
  /** In a file the text is unchanged; on a terminal its control characters are removed. */
  readonly isTerminal?: boolean
}

/**
 * Yields items of a source as text, part by part, and returns their number. A part is read only when the one before it was
 * consumed.
 */
export async function* exportItems(
  store: Store,
  query: ItemQuery,
  { format, limit = Infinity, isTerminal = false }: ExportOptions,
): AsyncGenerator<string, number, void> {
  const writer = makeWriter(format, isTerminal)
  const size = new BatchSize(query)
  let [count, end] = [0, null as string | null]
  for await (const part of itemParts(store, query, size)) {
    const { items, next } = cutPart(part, limit - count)
    count += items.length
    const text = writer.write(items)
    if (text !== '') yield text
    end = next
    if (count === limit) break
    size.adapt(writer.chars > CHUNK_CHARS_MAX)
  }
  const rest = writer.end(end)
  if (rest !== '') yield rest
  return count
}

type Writer = {
  /** Characters of the last items. */
  readonly chars: number
  write(items: readonly SavedItem[]): string
  /** `next`: where the items after the last one begin. */
  end(next: string | null): string
}

function makeWriter(format: ItemFormat, isTerminal: boolean): Writer {
  if (format === 'csv') return new CsvWriter(isTerminal)
  return format === 'json' ? new JsonWriter() : new JsonLinesWriter()
}

class JsonLinesWriter implements Writer {
  chars = 0

  write(items: readonly SavedItem[]): string {
    const text = items.map((item) => `${safeJson(itemView(item))}\n`).join('')
    this.chars = text.length
    return text
  }

  end(): string {
    return ''
  }
}

class JsonWriter implements Writer {
  chars = 0
  #isFirst = true

  write(items: readonly SavedItem[]): string {
    if (items.length === 0) return ''
    const text = items.map((item) => `\n${safeJson(itemView(item))}`).join(',')
    this.chars = text.length
    const before = this.#isFirst ? '{"items":[' : ','
    this.#isFirst = false
    return before + text
  }

  end(next: string | null): string {
    return `${this.#isFirst ? '{"items":[' : '\n'}],"next":${safeJson(next)}}\n`
  }
}

/** Holds the first items back until their columns are chosen. */
class CsvWriter implements Writer {
  chars = 0
  readonly #isTerminal: boolean
  readonly #sample: SavedItem[] = []
  #sampleChars = 0
  #columns: ItemColumns | null = null

  constructor(isTerminal: boolean) {
    this.#isTerminal = isTerminal
  }

  write(items: readonly SavedItem[]): string {
    if (this.#columns) return this.#rows(items)
    this.#sample.push(...items)
    this.chars = items.reduce((sum, { data }) => sum + (JSON.stringify(data) ?? '').length, 0)
    this.#sampleChars += this.chars
    const isFull = this.#sample.length >= SAMPLE_ITEMS || this.#sampleChars > SAMPLE_CHARS_MAX
    return isFull ? this.#begin(true) : ''
  }

  end(): string {
    return this.#columns ? '' : this.#begin(false)
  }

  #begin(isMore: boolean): string {
    this.#columns = chooseColumns(this.#sample, isMore)
    return formatHeader(this.#columns, this.#isTerminal) + this.#rows(this.#sample.splice(0))
  }

  #rows(items: readonly SavedItem[]): string {
    const text = items.map((item) => formatRow(item, this.#columns!, this.#isTerminal)).join('')
    this.chars = text.length
    return text
  }
}
