import { assertKnown, FIRST_VERSION, type Migration } from '../schema-version.ts'
import { sql, type Connection, type Database } from './database.ts'
import { initial } from './migrations/101-initial.ts'
import { views } from './migrations/102-views.ts'

export const MIGRATIONS: readonly Migration[] = [
  { number: FIRST_VERSION, name: 'initial', text: initial },
  { number: 102, name: 'views', text: views },
]

const CREATE_MIGRATION = /* sql */ `
  CREATE TABLE IF NOT EXISTS migration (
    number              INTEGER PRIMARY KEY,
    min_program_version INTEGER NOT NULL,     -- programs that know only an older schema finish their pages and end
    applied_at          INTEGER NOT NULL
  ) STRICT
`
const HAS_MIGRATION = sql('migrate:has-schema')`
  SELECT 1 FROM sqlite_schema WHERE name = 'migration'
`
const VERSION = sql('migrate:version')`SELECT coalesce(max(number), 0) AS number FROM migration`
const MIN_PROGRAM_VERSION = sql('migrate:min-program-version')`
  SELECT max(min_program_version) AS version FROM migration
`
const RECORD = sql('migrate:record')`
  INSERT INTO migration (number, min_program_version, applied_at) VALUES (:number, ${FIRST_VERSION}, :now)
`

export const SCHEMA_VERSION = MIGRATIONS.at(-1)!.number

/** Unstuck's own tables and views, by name: they can lie beside tables of the user in one file. */
export const OWN_TABLES: readonly string[] = [
  CREATE_MIGRATION,
  ...MIGRATIONS.map((one) => one.text),
]
  .flatMap((text) => [...text.matchAll(/CREATE (?:TABLE|VIEW) (?:IF NOT EXISTS )?(\w+)/g)])
  .map(([, name]) => name!)

/** Brings the schema up to date: forward only, each migration recorded in its own transaction. */
export async function migrate(db: Database): Promise<void> {
  while (knownVersion(db.reader) < SCHEMA_VERSION) {
    await db.write('migrate', (tx) => {
      // Another process may have applied it while this one waited for the lock.
      const version = knownVersion(tx)
      const next = MIGRATIONS.find(({ number }) => number > version)
      if (!next) return
      tx.exec(CREATE_MIGRATION)
      tx.exec(next.text)
      tx.run(RECORD, { number: next.number, now: tx.now() })
    })
  }
}

/** True when the schema has moved beyond what this program may write to. */
export function isTooOld(db: Connection): boolean {
  return (db.get<{ version: number | null }>(MIN_PROGRAM_VERSION)!.version ?? 0) > SCHEMA_VERSION
}

/** Returns the schema's version, 0 where there is none. Throws if this program cannot use it. */
function knownVersion(db: Connection): number {
  const found = foundVersion(db)
  assertKnown(found, SCHEMA_VERSION)
  return found
}

/** Returns the schema's version, whether this program knows it or not; 0 where there is none. */
export function foundVersion(db: Connection): number {
  if (!db.get(HAS_MIGRATION)) return 0
  return db.get<{ number: number }>(VERSION)!.number
}
