const MAX_LENGTH = 100

/** Makes untrusted text safe inside a sentence: removes control and format characters and line breaks, and cuts it. */
export function sanitizeLine(text: string, maxLength = MAX_LENGTH): string {
  const sanitized = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
  const characters = Array.from(sanitized.slice(0, 2 * maxLength + 2))
  return characters.length > maxLength
    ? `${characters.slice(0, maxLength - 1).join('')}…`
    : sanitized
}
