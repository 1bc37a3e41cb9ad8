import { ms } from '../../../core/store/postgres/database.ts'
import type { ColumnKind } from './columns.ts'
import { UNITS } from './timestamps.ts'

// Without capturing groups: PostgreSQL takes a hundred times as long for those.
const NUMBER_PATTERN = String.raw`^\d{1,17}(?:\.\d{1,20})?$`
const TEXT_PATTERN =
  String.raw`^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])` +
  String.raw`(?:[Tt ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:\s?(?:[Zz]|[Uu][Tt][Cc]|[Gg][Mm][Tt]|[+-]\d\d(?::?\d\d)?))?)?$`

/** SQL for the time of a column in milliseconds, or NULL. */
export function timestampSql(column: string, kind: ColumnKind, zone: () => string): string {
  switch (kind) {
    case 'timestamptz':
      return finiteSql(column, column)
    case 'timestamp':
      return finiteSql(column, `${column} AT TIME ZONE ${zone()}`)
    case 'date':
      return `${finiteSql(column, endOfDaySql(`${column}::timestamp`, zone()))} - 1`
    case 'text':
      return textToTimestampSql(column, zone())
    default:
      return numberToTimestampSql(`${column}::float8`)
  }
}

/** `infinity` becomes NULL. */
function finiteSql(column: string, time: string): string {
  return `CASE WHEN isfinite(${column}) THEN ${ms(`(${time})`)} END`
}

/** The start of the next day; the caller subtracts a millisecond. */
function endOfDaySql(day: string, zone: string): string {
  return `(${day} + interval '1 day') AT TIME ZONE ${zone}`
}

/** Seconds, milliseconds or microseconds, by size. */
function numberToTimestampSql(value: string): string {
  const units = UNITS.map(
    ({ from, to, ms: each }) => /* sql */ `
      WHEN n >= ${from} AND n < ${to} THEN floor(round(n * ${each} * 1e3) / 1e3)`,
  )
  return /* sql */ `(SELECT CASE ${units.join('')} END FROM (SELECT ${value} AS n) AS number)`
}

/**
 * Parses by position. Days are added rather than cast, so that a 30th of February does not fail the whole query.
 */
function textToTimestampSql(column: string, zone: string): string {
  // t: the text; z: what is left of it after the time, its zone.
  const part = (from: number, length: number): string =>
    `coalesce(nullif(substr(t, ${from}, ${length}), ''), '0')`
  const seconds = /* sql */ `CASE WHEN substr(t, 17, 1) = ':' THEN substr(t, 18, 2) ELSE '0' END`
  const fraction = /* sql */ `rpad(left(substr(t, 21, greatest(length(t) - length(z) - 20, 0)), 3), 3, '0')`
  const wall = /* sql */ `
    (make_date(${part(1, 4)}::int, ${part(6, 2)}::int, 1) + (${part(9, 2)}::int - 1))::timestamp
      + make_interval(hours => ${part(12, 2)}::int, mins => ${part(15, 2)}::int,
                      secs => (${seconds} || '.' || ${fraction})::float8)`
  const offset = /* sql */ `
    CASE WHEN z ~ '[+-]'
         THEN make_interval(hours => left(btrim(z), 3)::int,
                            mins => (left(btrim(z), 1) || coalesce(nullif(right(replace(btrim(z), ':', ''), -3), ''), '0'))::int)
         ELSE interval '0' END`
  // OFFSET 0 makes PostgreSQL compute it once, not at each use.
  return /* sql */ `(
    SELECT CASE WHEN t ~ '${NUMBER_PATTERN}' THEN ${numberToTimestampSql('t::float8')}
                WHEN (t ~ '${TEXT_PATTERN}' AND left(t, 4) <> '0000') IS NOT TRUE THEN NULL
                WHEN length(t) = 10 THEN ${ms(`(${endOfDaySql(wall, zone)})`)} - 1
                WHEN z = '' THEN ${ms(`((${wall}) AT TIME ZONE ${zone})`)}
                ELSE ${ms(`((${wall} - ${offset}) AT TIME ZONE 'UTC')`)} END
      FROM (SELECT t, ltrim(substr(t, 17), ':.0123456789') AS z
              FROM (SELECT btrim(${column}::text, E' \\t\\n\\r\\f\\v') AS t OFFSET 0) AS trimmed OFFSET 0) AS parts)`
}
