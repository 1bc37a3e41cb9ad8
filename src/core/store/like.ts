/**
 * Patterns for LIKE from typed text, with its wildcards escaped. Without NULs and lone surrogates,
 * which PostgreSQL refuses and at which SQLite stops reading.
 */

export function containing(text: string): string {
  return `%${escaped(text)}%`
}

export function endingWith(text: string): string {
  return `%${escaped(text)}`
}

/** For statements with `ESCAPE '\'`. */
function escaped(text: string): string {
  return text
    .replaceAll('\0', '')
    .toWellFormed()
    .replaceAll(/[\\%_]/g, String.raw`\$&`)
}
