/** What a state means. Colour only repeats the words. */
export type Style = 'good' | 'warn' | 'bad' | 'dim' | 'strong'
export type Span = { readonly text: string; readonly style?: Style | undefined }
export type Cell = string | Span

/** One statement. The terminal colours its spans, the dashboard makes elements, alerts and logs join them. */
export type Sentence = readonly Cell[]

export type Column = {
  readonly header: string
  readonly align?: 'right'
  /** Shrinks first: it is cut with an ellipsis until the rest fits. */
  readonly flex?: true
  /** How far it may shrink. */
  readonly min?: number
  /** May be left out on a narrow terminal; the highest number is left out first. */
  readonly optional?: number
}

/** The length of the longest of these texts. */
export function longest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map((text) => text.length))
}

export type Table = {
  readonly columns: readonly Column[]
  readonly rows: readonly (readonly Cell[])[]
}

/** A column of a table of `T`s. */
export type ColumnOf<T> = Column & { readonly cell: (item: T) => Cell }

export function left<T>(header: string, cell: (item: T) => Cell, optional?: number): ColumnOf<T> {
  return { header, cell, ...(optional !== undefined && { optional }) }
}

export function right<T>(header: string, cell: (item: T) => Cell, optional?: number): ColumnOf<T> {
  return { ...left(header, cell, optional), align: 'right' }
}

export function flex<T>(header: string, cell: (item: T) => Cell, optional?: number): ColumnOf<T> {
  return { ...left(header, cell, optional), flex: true }
}

export function makeTable<T>(items: readonly T[], columns: readonly ColumnOf<T>[]): Table {
  return {
    columns,
    rows: items.map((item) => columns.map(({ cell }) => cell(item))),
  }
}

/** A part of an answer: a heading, a table, sentences, in this order; each may be missing. */
export type Section = {
  readonly heading: string | null
  readonly table?: Table | undefined
  readonly sentences: readonly Sentence[]
}

/** Rows of a table, and sentences of a list, that are shown at most. */
export const ROWS_MAX = 50
export const LINES_MAX = 20

export function plainText(sentence: Sentence): string {
  return sentence.map((cell) => (typeof cell === 'string' ? cell : cell.text)).join('')
}

/** The first sentences of a list and, if some are left out, one with their number and where they are. */
export function firstSentences(
  all: readonly Sentence[],
  where: string,
  max = LINES_MAX,
): readonly Sentence[] {
  return all.length <= max ? all : [...all.slice(0, max), omitted(all.length - max, where)]
}

/** The same for rows of a table: nothing if all are shown. */
export function omittedRows(all: readonly unknown[], where: string, max = ROWS_MAX): Sentence[] {
  return all.length <= max ? [] : [omitted(all.length - max, where)]
}

/** `… and 7 more; `unstuck runs` lists them.` */
export function omitted(count: number, where: string): Sentence {
  return [{ text: `… and ${count} more; ${where}.`, style: 'dim' }]
}
