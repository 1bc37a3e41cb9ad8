import { stripVTControlCharacters } from 'node:util'
import type { TextWriter } from './text-writer.ts'
import { widthOf } from './width.ts'

export type Screen = { draw(text: string): Promise<void> }

/** Where a screen is drawn. */
export type ScreenOutput = {
  readonly columns: number
  readonly rows: number
  readonly write: (text: string) => Promise<void>
  /** Returns a writer of the terminal's width. */
  readonly makeWriter: () => TextWriter
}

/**
 * Redraws in place, on the normal screen: earlier output stays, and so does the last state after Ctrl-C. A terminal that
 * was made narrower has wrapped the old lines, so their height is computed again.
 */
export function makeScreen(output: Omit<ScreenOutput, 'makeWriter'>): Screen {
  let drawn: string[] = []
  return {
    async draw(text) {
      const lines = fit(text.split('\n').slice(0, -1), output.rows - 1)
      const height = drawn.reduce((sum, line) => sum + rowsOf(line, output.columns), 0)
      const up = height > 0 ? `\x1b[${Math.min(height, output.rows - 1)}A\r` : ''
      drawn = lines
      await output.write(`${up}${lines.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`)
    },
  }
}

function fit(lines: string[], rows: number): string[] {
  if (lines.length <= rows) return lines
  return [...lines.slice(0, rows - 1), `… ${lines.length - rows + 1} more lines`]
}

function rowsOf(line: string, columns: number): number {
  return Math.max(1, Math.ceil(widthOf(stripVTControlCharacters(line)) / columns))
}
