import { styleText } from 'node:util'
import { safeText } from '../../core/events/safe-text.ts'
import { layout, type Column, type Ink, type Line, type Span } from './table.ts'
import { truncate, widthOf } from './width.ts'

export type Cell = string | Span

const STYLES: Record<Ink, Parameters<typeof styleText>[0]> = {
  good: 'green',
  warn: 'yellow',
  bad: 'red',
  dim: 'dim',
  strong: 'bold',
}

/**
 * What people read. Everything written on it is made safe here, in one place, before it is measured and
 * coloured; so no command can forget to.
 */
export class Paper {
  readonly columns: number
  readonly #colour: boolean
  readonly #lines: string[] = []

  constructor(columns: number, colour: boolean) {
    this.columns = columns
    this.#colour = colour
  }

  /** One line, cut where it does not fit. */
  line(...cells: Cell[]): void {
    let left = this.columns
    const fitted = cells.map(safe).map(({ text, ink }): Span => {
      const cut = truncate(text, left)
      left -= widthOf(cut)
      return { text: cut, ink }
    })
    this.#put(fitted)
  }

  /** A sentence, wrapped between words; a list's entry under itself. Text in `backticks` is kept on one line. */
  say(...cells: Cell[]): void {
    const spans = cells.map(safe)
    const indent: Span = { text: spans[0]?.text.startsWith('- ') ? '  ' : '' }
    let line: Span[] = []
    let used = 0
    for (const { text, ink } of spans) {
      for (const word of text.match(/\s*(?:`[^`]*`\S*|\S+)|\s+$/g) ?? []) {
        const fits = used + widthOf(word) <= this.columns
        const wraps = !fits && used > indent.text.length
        if (wraps) {
          this.#put(line)
          line = [indent]
          used = indent.text.length
        }
        const put = wraps || (used === 0 && !fits) ? word.trimStart() : word
        line.push({ text: put, ink })
        used += widthOf(put)
      }
    }
    this.#put(line)
  }

  blank(): void {
    this.#lines.push('')
  }

  /** A title over what follows, apart from what came before. */
  heading(text: string): void {
    if (this.#lines.length > 0) this.blank()
    this.line({ text, ink: 'strong' })
  }

  table(columns: readonly Column[], rows: readonly (readonly Cell[])[]): void {
    const safeRows = rows.map((row) => row.map(safe))
    for (const line of layout(columns, safeRows, this.columns)) this.#put(line)
  }

  toString(): string {
    return this.#lines.map((line) => `${line}\n`).join('')
  }

  #put(line: Line): void {
    const text = line.map(({ text, ink }) => this.#dye(text, ink)).join('')
    this.#lines.push(text.trimEnd())
  }

  #dye(text: string, ink: Ink | undefined): string {
    if (!ink || !this.#colour || text.trim() === '') return text
    return styleText(STYLES[ink], text, { validateStream: false })
  }
}

function safe(cell: Cell): Span {
  const { text, ink } = typeof cell === 'string' ? { text: cell, ink: undefined } : cell
  return { text: safeText(text), ink }
}
