/** Names of users' tables and columns: checked before any SQL is made of them, and quoted in it all the same. */

const LENGTH_MAX = 63
// With '-' and single spaces inside, which people's tables do have: they mean nothing within quotes, and none of them can
// begin a comment or end a name.
const NAME = /^[A-Za-z_][A-Za-z0-9_$]*(?:[- ][A-Za-z0-9_$]+)*$/

/** What is wrong with a name, as the end of a sentence that begins with where it stands; null: nothing. */
export function nameMistake(text: unknown): string | null {
  if (typeof text !== 'string' || text === '') return 'must be a name'
  if (text.length > LENGTH_MAX) return `must be a name of at most ${LENGTH_MAX} characters`
  return NAME.test(text)
    ? null
    : "must be a name of letters from a to z, digits, '_' and '$', with single spaces or '-' inside, " +
        "that begins with a letter or '_'"
}

/** The same for the name of a table, which may have one of a schema and a dot before it. */
export function tableMistake(text: unknown): string | null {
  if (typeof text !== 'string' || text === '') return 'must be a name'
  const { schema, table } = splitTable(text)
  const mistake = (schema === null ? null : nameMistake(schema)) ?? nameMistake(table)
  return mistake && `${mistake}; that of its schema and a dot may come before it`
}

/** Whatever follows the first dot is the table, so that a second dot is a mistake in its name. */
export function splitTable(text: string): { schema: string | null; table: string } {
  const dot = text.indexOf('.')
  return dot < 0
    ? { schema: null, table: text }
    : { schema: text.slice(0, dot), table: text.slice(dot + 1) }
}

/** As it stands in SQL. A name that nobody should have let through this far is not quoted but refused. */
export function quoteName(text: string): string {
  const mistake = nameMistake(text)
  if (mistake !== null) throw new TypeError(`A table or column ${mistake}.`)
  return `"${text}"`
}
