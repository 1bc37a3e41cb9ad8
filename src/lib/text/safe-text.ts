/**
 * Makes text from web pages, users and other programs safe for a terminal or a log: one line, without characters that move
 * the cursor, set the clipboard or title, hide a link or reverse the reading direction. They stay visible as escapes.
 */
export function safeText(text: string): string {
  if (PLAIN.test(text)) return text
  return text.toWellFormed().replace(BREAKS, ' ').replace(HOSTILE, escaped)
}

/** Returns JSON of the same value that is also safe to print. */
export function safeJson(value: unknown, indent?: number): string {
  const json = JSON.stringify(value, null, indent) ?? 'null'
  if (PLAIN_JSON.test(json)) return json
  return json.replace(HOSTILE_IN_JSON, (char) =>
    Array.from({ length: char.length }, (_, i) => unit(char.charCodeAt(i))).join(''),
  )
}

const PLAIN = /^[\x20-\x7e]*$/
const PLAIN_JSON = /^[\n\x20-\x7e]*$/
const BREAKS = /\r\n|[\t\n\r\v\f\u0085\u2028\u2029]/g
// Control and format characters, except the two joiners used by scripts and emoji.
const HOSTILE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}]/gu
// JSON escapes the controls below space by itself, and indents with line feeds.
const HOSTILE_IN_JSON = /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

function escaped(char: string): string {
  const code = char.codePointAt(0)!
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`
  return code <= 0xffff ? unit(code) : `\\u{${code.toString(16)}}`
}

function unit(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`
}
