/** A reason must never be why something cannot be kept: PostgreSQL takes no NUL and no half character. */
export function stripNul(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

/** The same for what goes in as JSON: each text in it, names too. */
export function stripNulJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === 'string') return stripNul(part)
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
    return Object.fromEntries(Object.entries(part).map(([name, one]) => [stripNul(name), one]))
  })
}
