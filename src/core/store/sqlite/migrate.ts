import { SchemaTooNewError } from '../../model/errors.ts'
import { sql, type Connection, type Database } from './database.ts'
import { heart } from './migrations/001-heart.ts'
import { doors } from './migrations/002-doors.ts'
import { commands } from './migrations/003-commands.ts'
import { watching } from './migrations/004-watching.ts'
import { adopted } from './migrations/005-adopted.ts'
import { storages } from './migrations/006-storages.ts'
import { httpSessions } from './migrations/007-http-sessions.ts'
import { lostClaims } from './migrations/008-lost-claims.ts'
import { clock } from './migrations/009-clock.ts'

const MIGRATIONS: readonly { readonly name: string; readonly text: string }[] = [
  { name: 'heart', text: heart },
  { name: 'doors', text: doors },
  { name: 'commands', text: commands },
  { name: 'watching', text: watching },
  { name: 'adopted', text: adopted },
  { name: 'storages', text: storages },
  { name: 'http-sessions', text: httpSessions },
  { name: 'lost-claims', text: lostClaims },
  { name: 'clock', text: clock },
]

const CREATE_MIGRATION = /* sql */ `
  CREATE TABLE IF NOT EXISTS migration (
    number     INTEGER PRIMARY KEY,
    -- Programs that do not know at least this version must not go on: they drain and end.
    lowest     INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
  ) STRICT
`
const HAS_MIGRATION = sql('migrate:look', `SELECT 1 FROM sqlite_schema WHERE name = 'migration'`)
const VERSION = sql(
  'migrate:version',
  `SELECT coalesce(max(number), 0) AS number, coalesce(max(lowest), 0) AS lowest FROM migration`,
)
const RECORD = sql(
  'migrate:record',
  `INSERT INTO migration (number, lowest, applied_at) VALUES (:number, 1, :now)`,
)

export const SCHEMA_VERSION = MIGRATIONS.length

/** Our own tables, by name: they may stand beside the user's in one file. */
export const OWN_TABLES: readonly string[] = [
  CREATE_MIGRATION,
  ...MIGRATIONS.map((one) => one.text),
]
  .flatMap((text) => [...text.matchAll(/CREATE TABLE (?:IF NOT EXISTS )?(\w+)/g)])
  .map(([, name]) => name!)

/** Brings the schema up to date: forward only, each step recorded in its own transaction. */
export async function migrate(db: Database): Promise<void> {
  if (version(db.reader).number > SCHEMA_VERSION) refuse(db.reader)
  while (version(db.reader).number < SCHEMA_VERSION) {
    await db.write('migrate', (tx) => {
      tx.exec(CREATE_MIGRATION)
      // Another process may have done this step while we waited for the lock.
      const { number } = version(tx)
      if (number > SCHEMA_VERSION) refuse(tx)
      if (number === SCHEMA_VERSION) return
      tx.exec(MIGRATIONS[number]!.text)
      tx.run(RECORD, { number: number + 1, now: tx.now() })
    })
  }
}

/** True when the schema has moved beyond what this program may write to. */
export function isTooOld(db: Connection): boolean {
  return version(db).lowest > SCHEMA_VERSION
}

/** The names of those that a schema of this version still lacks. */
export function pendingAfter(number: number): string[] {
  return MIGRATIONS.slice(number).map(({ name }) => name)
}

export function version(db: Connection): { number: number; lowest: number } {
  if (!db.get(HAS_MIGRATION)) return { number: 0, lowest: 0 }
  return db.get<{ number: number; lowest: number }>(VERSION)!
}

function refuse(db: Connection): never {
  throw new SchemaTooNewError(version(db).number, SCHEMA_VERSION)
}
