import type { Column, Span } from '../text/sentence.ts'
import { pad, truncate, widthOf } from './width.ts'

export type Line = readonly Span[]

const GAP = 2
const FLEX_MIN = 8

function minOf({ min = 0 }: Column): number {
  return Math.max(FLEX_MIN, min)
}

/** Aligned plain columns that fit the width. Cells must be safe text already. */
export function layout(columns: readonly Column[], rows: readonly Line[], width: number): Line[] {
  const kept = chooseColumns(columns, rows, width)
  const widths = shrinkColumns(columns, kept, naturalWidths(columns, rows), width)
  const heads = columns.map((column): Span => ({ text: column.header, style: 'dim' }))
  return [heads, ...rows].map((row) =>
    kept.map((index, place) => {
      const last = place === kept.length - 1
      const { text, style } = row[index] ?? { text: '' }
      const { align } = columns[index]!
      const cut = truncate(text, widths[index]!)
      // Nothing is padded at the end of a line: it would only be noise in a pipe.
      const filled = last && align !== 'right' ? cut : pad(cut, widths[index]!, align)
      return { text: last ? filled : filled + ' '.repeat(GAP), style }
    }),
  )
}

function naturalWidths(columns: readonly Column[], rows: readonly Line[]): number[] {
  return columns.map(({ header }, i) =>
    rows.reduce((most, row) => Math.max(most, widthOf(row[i]?.text ?? '')), widthOf(header)),
  )
}

function chooseColumns(columns: readonly Column[], rows: readonly Line[], width: number): number[] {
  const widths = naturalWidths(columns, rows)
  let kept = columns.map((_, i) => i)
  const least = (): number =>
    kept.reduce(
      (sum, i) => sum + (columns[i]!.flex ? Math.min(minOf(columns[i]!), widths[i]!) : widths[i]!),
      0,
    ) +
    GAP * (kept.length - 1)
  while (least() > width) {
    const optional = kept.filter((i) => columns[i]!.optional !== undefined)
    if (optional.length === 0) break
    const first = optional.reduce((a, b) => (columns[b]!.optional! > columns[a]!.optional! ? b : a))
    kept = kept.filter((i) => i !== first)
  }
  return kept
}

function shrinkColumns(
  columns: readonly Column[],
  kept: readonly number[],
  widths: readonly number[],
  width: number,
): number[] {
  const fitted = [...widths]
  let over = kept.reduce((sum, i) => sum + widths[i]!, 0) + GAP * (kept.length - 1) - width
  const flexible = kept.filter((i) => columns[i]!.flex)
  // The widest gives first, so that two long columns end up alike; then the last one, however short.
  for (; over > 0; over--) {
    const wide = flexible.filter((i) => fitted[i]! > minOf(columns[i]!))
    if (wide.length === 0) break
    fitted[wide.reduce((a, b) => (fitted[b]! >= fitted[a]! ? b : a))]!--
  }
  for (const index of kept.toReversed()) {
    const give = Math.max(0, Math.min(over, fitted[index]! - 1))
    fitted[index]! -= give
    over -= give
  }
  return fitted
}
