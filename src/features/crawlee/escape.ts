/**
 * PostgreSQL keeps no NUL and no half of a character, and pages are full of what it does not keep. Both are written as this
 * character and four digits, and so is the character itself: what is read back is what was written, on every engine.
 */
const ESCAPE = '\u001a'
const LONE_SURROGATE = /\p{Cs}/gu
const DIGITS = 4

/** A text that every engine keeps. */
export function escapeText(text: string): string {
  return text.replaceAll(ESCAPE, encode).replaceAll('\0', encode).replace(LONE_SURROGATE, encode)
}

/** What it was. */
export function unescapeText(text: string): string {
  if (!text.includes(ESCAPE)) return text
  const [first, ...rest] = text.split(ESCAPE)
  const read = rest.map(
    (part) => String.fromCharCode(parseInt(part.slice(0, DIGITS), 16)) + part.slice(DIGITS),
  )
  return [first, ...read].join('')
}

/** Plain JSON, as of now, with every text of it escaped, names too. */
export function escapeJson(value: unknown): unknown {
  const text = JSON.stringify(value)
  // Nearly always there is nothing to do, which the text tells at once.
  return /\\u(?:0000|001a|d[89a-f])/.test(text)
    ? mapStrings(JSON.parse(text), escapeText)
    : JSON.parse(text)
}

/** What it was. */
export function unescapeJson(value: unknown): unknown {
  return JSON.stringify(value ?? null).includes('\\u001a') ? mapStrings(value, unescapeText) : value
}

function mapStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one) => mapStrings(one, change))
  const entries = Object.entries(value)
  return Object.fromEntries(entries.map(([name, one]) => [change(name), mapStrings(one, change)]))
}

function encode(character: string): string {
  return ESCAPE + character.charCodeAt(0).toString(16).padStart(DIGITS, '0')
}
