/**
 * PostgreSQL stores neither NUL nor lone surrogates, which pages contain. Both, and this character itself, are written as this
 * character and four digits, so that the text is read as it was written, on every engine.
 */
const ESCAPE = '\u001a'
const LONE_SURROGATE = /\p{Cs}/gu
const DIGITS = 4

/** Escapes a text so that every engine stores it. */
export function escapeText(text: string): string {
  return text.replaceAll(ESCAPE, encode).replaceAll('\0', encode).replace(LONE_SURROGATE, encode)
}

/** Reverts `escapeText`. */
export function unescapeText(text: string): string {
  if (!text.includes(ESCAPE)) return text
  const [first, ...rest] = text.split(ESCAPE)
  const read = rest.map(
    (part) => String.fromCharCode(parseInt(part.slice(0, DIGITS), 16)) + part.slice(DIGITS),
  )
  return [first, ...read].join('')
}

/** Returns a copy as plain JSON, with every text escaped, names too. */
export function escapeJson(value: unknown): unknown {
  const text = JSON.stringify(value)
  // Nearly always nothing needs an escape.
  return /\\u(?:0000|001a|d[89a-f])/.test(text)
    ? mapStrings(JSON.parse(text), escapeText)
    : JSON.parse(text)
}

/** Reverts `escapeJson`. */
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
