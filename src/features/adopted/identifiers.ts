/** Names of users' tables and columns: checked before any SQL is made of them, and quoted in it all the same. */

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/

/** What is wrong with a name, as the end of a sentence that begins with where it stands; null: nothing. */
export function identifierMistake(text: unknown): string | null {
  if (typeof text === 'string' && IDENTIFIER.test(text)) return null
  return (
    "must be a name of letters from a to z, digits, '_' and '$', at most 63 of them, " +
    "that begins with a letter or '_'"
  )
}

/** The same for the name of a table, which may have one of a schema and a dot before it. */
export function tableNameMistake(text: unknown): string | null {
  if (typeof text !== 'string') return identifierMistake(text)
  const { schema, table } = splitTableName(text)
  const mistake = (schema === null ? null : identifierMistake(schema)) ?? identifierMistake(table)
  return mistake && `${mistake}; that of its schema and a dot may come before it`
}

/** Whatever follows the first dot is the table, so that a second dot is a mistake in its name. */
export function splitTableName(text: string): { schema: string | null; table: string } {
  const dot = text.indexOf('.')
  return dot < 0
    ? { schema: null, table: text }
    : { schema: text.slice(0, dot), table: text.slice(dot + 1) }
}

/** As it stands in SQL. A name that nobody should have let through this far is not quoted but refused. */
export function quoteIdentifier(text: string): string {
  const mistake = identifierMistake(text)
  if (mistake !== null) throw new TypeError(`A table or column ${mistake}.`)
  return `"${text}"`
}
