/** Characters that PostgreSQL cannot store: NUL, and half of a surrogate pair. They become U+FFFD on both engines. */

const REPLACEMENT = '\ufffd'

export function isClean(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

export function cleanText(text: string): string {
  return isClean(text) ? text : text.replaceAll('\0', REPLACEMENT).toWellFormed()
}

/** How many characters `cleanText` replaces. */
export function countReplaced(text: string): number {
  return isClean(text) ? 0 : (text.match(DIRTY)?.length ?? 0)
}

// With the `u` flag a surrogate matches only when it stands alone.
const DIRTY = /[\0\p{Cs}]/gu

/**
 * The same for JSON text as `JSON.stringify` writes it, names included: there such a character is an escape, and every
 * other backslash belongs to an escape that is left alone.
 */
export function cleanJson(json: string): { readonly json: string; readonly replaced: number } {
  if (!json.includes('\\u')) return { json, replaced: 0 }
  let replaced = 0
  const clean = json.replace(ESCAPE, (escape, dirty: string | undefined) => {
    if (dirty === undefined) return escape
    replaced++
    return REPLACEMENT
  })
  return { json: clean, replaced }
}

const ESCAPE = /\\(?:(u0000|ud[89a-f][0-9a-f]{2})|[^])/g

const CUT_NOTE = /… \(cut; it had (\d+) characters\)$/

/** Cuts a text to so many bytes of UTF-8, and notes at its end how long it was at first, also when it is cut again. */
export function cutText(text: string, bytesMax: number): string {
  // No character takes more than three bytes per unit.
  if (text.length * 3 <= bytesMax) return text
  const isLong = text.length > bytesMax || Buffer.byteLength(text) > bytesMax
  if (!isLong) return text
  const length = CUT_NOTE.exec(text)?.[1] ?? text.length
  const note = `… (cut; it had ${length} characters)`
  const kept = Buffer.from(text.slice(0, bytesMax)).subarray(0, bytesMax - Buffer.byteLength(note))
  // The cut may go through a character.
  return `${kept.toString().replace(/\ufffd+$/, '')}${note}`
}
