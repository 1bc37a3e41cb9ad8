import { styleText } from 'node:util'
import { safeText } from '../text/safe-text.ts'
import { type Cell, type Column, type Section, type Span, type Style } from '../text/sentence.ts'
import { layout, type Line } from './table.ts'
import { truncate, widthOf } from './width.ts'

const TERMINAL_STYLES: Record<Style, Parameters<typeof styleText>[0]> = {
  good: 'green',
  warn: 'yellow',
  bad: 'red',
  dim: 'dim',
  strong: 'bold',
}

/** Lays out text for a terminal. All text is sanitized here, before it is measured and coloured. */
export class TextWriter {
  readonly columns: number
  readonly #colour: boolean
  readonly #lines: string[] = []

  constructor(columns: number, colour: boolean) {
    this.columns = columns
    this.#colour = colour
  }

  /** Writes one line and cuts it where it does not fit. */
  line(...cells: Cell[]): void {
    let left = this.columns
    const fitted = cells.map(toSafeSpan).map(({ text, style }): Span => {
      const cut = truncate(text, left)
      left -= widthOf(cut)
      return { text: cut, style }
    })
    this.#push(fitted)
  }

  /** Wraps between words; an entry of a list is indented. Text in `backticks` stays on one line. */
  paragraph(...cells: Cell[]): void {
    const spans = cells.map(toSafeSpan)
    const indent: Span = { text: spans[0]?.text.startsWith('- ') ? '  ' : '' }
    let line: Span[] = []
    let used = 0
    for (const { text, style } of spans) {
      for (const word of text.match(/\s*(?:`[^`]*`\S*|\S+)|\s+$/g) ?? []) {
        const fits = used + widthOf(word) <= this.columns
        const wraps = !fits && used > indent.text.length
        if (wraps) {
          this.#push(line)
          line = [indent]
          used = indent.text.length
        }
        const put = wraps || (used === 0 && !fits) ? word.trimStart() : word
        line.push({ text: put, style })
        used += widthOf(put)
      }
    }
    this.#push(line)
  }

  blank(): void {
    this.#lines.push('')
  }

  /** Writes a heading, with a blank line before it unless it is the first line. */
  heading(text: string): void {
    if (this.#lines.length > 0) this.blank()
    this.line({ text, style: 'strong' })
  }

  table(columns: readonly Column[], rows: readonly (readonly Cell[])[]): void {
    const safeRows = rows.map((row) => row.map(toSafeSpan))
    for (const line of layout(columns, safeRows, this.columns)) this.#push(line)
  }

  /** Writes sections with a blank line between them. */
  sections(sections: readonly Section[]): void {
    for (const { heading, table, sentences } of sections) {
      if (this.#lines.length > 0) this.blank()
      if (heading !== null) this.line({ text: heading, style: 'strong' })
      if (table) this.table(table.columns, table.rows)
      for (const sentence of sentences) this.paragraph(...sentence)
    }
  }

  toString(): string {
    return this.#lines.map((line) => `${line}\n`).join('')
  }

  #push(line: Line): void {
    const text = line.map(({ text, style }) => this.#style(text, style)).join('')
    this.#lines.push(text.trimEnd())
  }

  #style(text: string, style: Style | undefined): string {
    if (!style || !this.#colour || text.trim() === '') return text
    return styleText(TERMINAL_STYLES[style], text, { validateStream: false })
  }
}

function toSafeSpan(cell: Cell): Span {
  const { text, style } = typeof cell === 'string' ? { text: cell, style: undefined } : cell
  return { text: safeText(text), style }
}
