import { OWN_TABLES } from '../../core/store/sqlite/migrate.ts'

/** All of these together are in no other program's file; one of them alone may be. */
const FIRST = ['migration', 'worker', 'target', 'tally', 'turn']

/** Which of the tables in a SQLite file are Unstuck's own. */
export function ownTables(names: readonly string[]): ReadonlySet<string> {
  return new Set(FIRST.every((name) => names.includes(name)) ? OWN_TABLES : [])
}
