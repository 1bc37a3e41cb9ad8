/** Columns a text takes on a terminal: two for Chinese, Japanese and Korean characters and for emoji. */
export function widthOf(text: string): number {
  if (NARROW.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes(text)) width += graphemeWidth(segment)
  return width
}

/** The text itself where it fits, else its start and an ellipsis. */
export function truncate(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  if (width <= 0) return ''
  let kept = ''
  let used = 1
  for (const { segment } of graphemes(text)) {
    used += graphemeWidth(segment)
    if (used > width) break
    kept += segment
  }
  return `${kept.trimEnd()}…`
}

export function pad(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)))
  return align === 'left' ? text + space : space + text
}

const NARROW = /^[\x20-\x7e]*$/
const EMOJI =
  /\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f|\p{Regional_Indicator}{2}|\u20e3/u
const INVISIBLE = /^[\p{M}\p{Cf}\p{Cc}]+$/u
// Unicode's East Asian Width "wide" and "fullwidth", in ranges; JavaScript has no property for it.
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{20000}-\u{3fffd}]/u

let segmenter: Intl.Segmenter | undefined

function graphemes(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter()
  return segmenter.segment(text)
}

function graphemeWidth(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0
  return EMOJI.test(grapheme) || WIDE.test(grapheme) ? 2 : 1
}
