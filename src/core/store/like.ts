/**
 * Patterns for LIKE from what a person typed: it stands for itself, wildcards and all. Without NULs and half characters,
 * which PostgreSQL refuses and at which SQLite stops reading.
 */

export function containing(text: string): string {
  return `%${escaped(text)}%`
}

export function endingWith(text: string): string {
  return `%${escaped(text)}`
}

/** Both engines are told `ESCAPE '\'`. */
function escaped(text: string): string {
  return text
    .replaceAll('\0', '')
    .toWellFormed()
    .replaceAll(/[\\%_]/g, String.raw`\$&`)
}
