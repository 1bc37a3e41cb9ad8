/** Names of users' tables and columns are validated before they get into SQL, and quoted there. */

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/

/** Returns what is wrong with a name, as a predicate for an error message; null if it is valid. */
export function identifierMistake(text: unknown): string | null {
  if (typeof text === 'string' && IDENTIFIER.test(text)) return null
  return (
    "must be a name of letters from a to z, digits, '_' and '$', at most 63 of them, " +
    "that begins with a letter or '_'"
  )
}

/** The same for the name of a table, with or without its schema. */
export function tableNameMistake(text: unknown): string | null {
  if (typeof text !== 'string') return identifierMistake(text)
  const { schema, table } = splitTableName(text)
  const mistake = (schema === null ? null : identifierMistake(schema)) ?? identifierMistake(table)
  return mistake && `${mistake}; that of its schema and a dot may come before it`
}

/** Splits at the first dot, so that a second dot makes the name of the table invalid. */
export function splitTableName(text: string): { schema: string | null; table: string } {
  const dot = text.indexOf('.')
  return dot < 0
    ? { schema: null, table: text }
    : { schema: text.slice(0, dot), table: text.slice(dot + 1) }
}

/** Quotes a name for SQL. Throws on an invalid one, which callers must have rejected before. */
export function quoteIdentifier(text: string): string {
  const mistake = identifierMistake(text)
  if (mistake !== null) throw new TypeError(`A table or column ${mistake}.`)
  return `"${text}"`
}
