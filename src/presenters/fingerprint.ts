import { hash } from 'node:crypto'

/** Where an error stops to say what kind it is: what follows is a stack, or a page's whole text. */
const LENGTH_MAX = 500

/** What differs between two errors of one kind, widest first. None of these looks at a character more than a few times. */
const VARIABLE_PARTS: readonly (readonly [RegExp, string])[] = [
  [/\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s'"`<>)\]]+/gi, '<url>'],
  [/"[^"]*"|`[^`]*`|“[^”]*”|(?<!\w)'[^']*'(?!\w)/g, '<text>'],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, '<id>'],
  [/\b(?:0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{8,})\b/gi, '<id>'],
  // But for codes, which are the kind itself: `HTTP 403` is another trouble than `HTTP 503`.
  [/(?<!\d|\b(?:http|status|code|answered):? )\d+(?:[.,:]\d+)*/gi, '<n>'],
  [/\s+/g, ' '],
]

/** The kind of an error: its first line without what belongs to one case alone. */
export function errorKind(error: string): string {
  let kind = error.trimStart().slice(0, LENGTH_MAX).split('\n', 1)[0]!
  for (const [particular, word] of VARIABLE_PARTS) kind = kind.replace(particular, word)
  return kind.trim().toLowerCase()
}

/** A short name for the kind of an error. Errors of the same kind have the same. */
export function fingerprintOf(error: string): string {
  return hash('sha256', errorKind(error)).slice(0, 12)
}
