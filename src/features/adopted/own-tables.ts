import { OWN_TABLES } from '../../core/store/sqlite/migrate.ts'

/** All of these together are in no other program's file; one of them alone may be. */
const SIGNATURE_TABLES = ['migration', 'worker', 'target', 'run_counters', 'leader']

/** Which of the tables in a SQLite file are Unstuck's own. */
export function ownTables(names: readonly string[]): ReadonlySet<string> {
  return new Set(SIGNATURE_TABLES.every((name) => names.includes(name)) ? OWN_TABLES : [])
}
