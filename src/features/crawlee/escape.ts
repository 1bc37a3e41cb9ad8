/**
 * PostgreSQL keeps no NUL and no half of a character, and pages are full of what it does not keep. Both are written as this
 * character and four digits, and so is the character itself: what is read back is what was written, on every engine.
 */
const MARK = '\u001a'
const HALF = /\p{Cs}/gu
const DIGITS = 4

/** A text that every engine keeps. */
export function escaped(text: string): string {
  return text.replaceAll(MARK, code).replaceAll('\0', code).replace(HALF, code)
}

/** What it was. */
export function unescaped(text: string): string {
  if (!text.includes(MARK)) return text
  const [first, ...rest] = text.split(MARK)
  const read = rest.map(
    (part) => String.fromCharCode(parseInt(part.slice(0, DIGITS), 16)) + part.slice(DIGITS),
  )
  return [first, ...read].join('')
}

/** Plain JSON, as of now, with every text of it escaped, names too. */
export function escapedJson(value: unknown): unknown {
  const text = JSON.stringify(value)
  // Nearly always there is nothing to do, which the text tells at once.
  return /\\u(?:0000|001a|d[89a-f])/.test(text) ? each(JSON.parse(text), escaped) : JSON.parse(text)
}

/** What it was. */
export function unescapedJson(value: unknown): unknown {
  return JSON.stringify(value ?? null).includes('\\u001a') ? each(value, unescaped) : value
}

function each(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one) => each(one, change))
  const entries = Object.entries(value)
  return Object.fromEntries(entries.map(([name, one]) => [change(name), each(one, change)]))
}

function code(character: string): string {
  return MARK + character.charCodeAt(0).toString(16).padStart(DIGITS, '0')
}
