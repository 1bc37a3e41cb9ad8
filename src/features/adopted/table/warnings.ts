/** What a person should know about their table. */

/** From here on it matters whether the database finds the active rows by an index. */
export const MANY_ROWS = 10_000

export function noIndexWarning(table: string, status: string): string {
  return (
    `${table} has more than ${MANY_ROWS} rows and no index on ${status}: each look at it reads the whole table. ` +
    'An index would help.'
  )
}

export function timeZoneWarning(table: string, columns: readonly string[], zone: string): string {
  return (
    `${table}: times in ${columns.join(', ')} have no zone and are taken for UTC, but the database is on ${zone}. ` +
    `Write timeZone: '${zone}' if they are of that zone, or timeZone: 'UTC'.`
  )
}

export function notUniqueWarning(table: string, id: string): string {
  return `${table} has no unique index on ${id}: rows that share one are shown, but left as they are.`
}

export function readOnlyWarning(table: string, grant: string): string {
  return `${table} can be looked at, and nothing can be done to its rows: ${grant}`
}
