const LENGTH_MAX = 100

/** What strangers wrote, as a part of a sentence: no control or format characters, no line breaks, not too long. */
export function inOneLine(text: string, lengthMax = LENGTH_MAX): string {
  const plain = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
  const letters = Array.from(plain.slice(0, 2 * lengthMax + 2))
  return letters.length > lengthMax ? `${letters.slice(0, lengthMax - 1).join('')}…` : plain
}
