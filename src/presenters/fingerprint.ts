import { hash } from 'node:crypto'

/** The kind of an error ends here: a stack or the text of a whole page follows. */
const LENGTH_MAX = 500

/**
 * Parts that differ between two errors of one kind, widest first. Each pattern reads a character only a few
 * times.
 */
const VARIABLE_PARTS: readonly (readonly [RegExp, string])[] = [
  [/\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s'"`<>)\]]+/gi, '<url>'],
  [/"[^"]*"|`[^`]*`|“[^”]*”|(?<!\w)'[^']*'(?!\w)/g, '<text>'],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, '<id>'],
  [/\b(?:0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{8,})\b/gi, '<id>'],
  // Status codes are kept, because they are the kind itself: `HTTP 403` is another failure than `HTTP 503`.
  [/(?<!\d|\b(?:http|status|code|answered):? )\d+(?:[.,:]\d+)*/gi, '<n>'],
  [/\s+/g, ' '],
]

/** Returns the kind of an error: its first line without the parts that vary between cases. */
export function errorKind(error: string): string {
  let kind = error.trimStart().slice(0, LENGTH_MAX).split('\n', 1)[0]!
  for (const [particular, word] of VARIABLE_PARTS) kind = kind.replace(particular, word)
  return kind.trim().toLowerCase()
}

/** Returns a short name for the kind of an error. Errors of the same kind have the same name. */
export function fingerprintOf(error: string): string {
  return hash('sha256', errorKind(error)).slice(0, 12)
}
