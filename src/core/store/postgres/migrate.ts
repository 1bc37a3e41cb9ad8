import { SchemaTooNewError } from '../../model/errors.ts'
import { sql, type Connection } from './database.ts'
import { codeOf } from './errors.ts'
import { heart } from './migrations/001-heart.ts'
import { doors } from './migrations/002-doors.ts'
import { commands } from './migrations/003-commands.ts'
import { watching } from './migrations/004-watching.ts'
import { adopted } from './migrations/005-adopted.ts'
import { storages } from './migrations/006-storages.ts'
import { httpSessions } from './migrations/007-http-sessions.ts'
import { lostClaims } from './migrations/008-lost-claims.ts'

const MIGRATIONS: readonly { readonly name: string; readonly text: string }[] = [
  { name: 'heart', text: heart },
  { name: 'doors', text: doors },
  { name: 'commands', text: commands },
  { name: 'watching', text: watching },
  { name: 'adopted', text: adopted },
  { name: 'storages', text: storages },
  { name: 'http-sessions', text: httpSessions },
  { name: 'lost-claims', text: lostClaims },
]

const HAS_SCHEMA = sql(
  'migrate:look',
  `SELECT to_regclass('unstuck.migration') IS NOT NULL AS found`,
)
const VERSION = sql(
  'migrate:version',
  `SELECT coalesce(max(number), 0)::int AS number FROM unstuck.migration`,
)
// Any number that nobody else would choose.
const LOCK = sql('migrate:lock', `SELECT pg_advisory_xact_lock(7166254318094)`)
const CREATE = /* sql */ `
  SET LOCAL lock_timeout = '5s';
  CREATE SCHEMA IF NOT EXISTS unstuck;
  CREATE TABLE IF NOT EXISTS unstuck.migration (
    number     integer PRIMARY KEY,
    name       text NOT NULL DEFAULT '',
    -- Programs that do not know at least this version must not go on: they drain and end.
    lowest     integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
  );
`
const RECORD = sql(
  'migrate:record',
  `INSERT INTO unstuck.migration (number, name, lowest) VALUES ($1, $2, 1)`,
)

export const SCHEMA_VERSION = MIGRATIONS.length

const TRIES = 5

/** Brings the schema up to date, forward only. Where there is nothing to do, nothing is written and no right is needed. */
export async function migrate(connection: Connection): Promise<void> {
  for (let attempt = 1; (await version(connection)) < SCHEMA_VERSION; attempt++) {
    try {
      await connection.exec('migrate:begin', 'BEGIN')
      await connection.all(LOCK)
      await connection.exec('migrate:create', CREATE)
      await applyPending(connection)
      await connection.exec('migrate:commit', 'COMMIT')
    } catch (error) {
      await connection.rollback('migrate')
      if (!isRace(error) || attempt === TRIES) throw error
    }
  }
}

async function applyPending(connection: Connection): Promise<void> {
  // Another process may have been here while we waited for the lock.
  const number = await version(connection)
  for (const [at, { name, text }] of MIGRATIONS.entries()) {
    if (at < number) continue
    await connection.exec(`migrate:${name}`, text)
    await connection.all(RECORD, [at + 1, name])
  }
}

/** The schema's version; refuses one that this program does not know. */
export async function version(connection: Connection): Promise<number> {
  const number = await foundVersion(connection)
  if (number > SCHEMA_VERSION) throw new SchemaTooNewError(number, SCHEMA_VERSION)
  return number
}

/** The schema's version, whether this program knows it or not; 0 where there is none. */
export async function foundVersion(connection: Connection): Promise<number> {
  const [schema] = await connection.all<{ found: boolean }>(HAS_SCHEMA)
  if (!schema!.found) return 0
  const [row] = await connection.all<{ number: number }>(VERSION)
  return row!.number
}

/** The names of those that a schema of this version still lacks. */
export function pendingAfter(number: number): string[] {
  return MIGRATIONS.slice(number).map(({ name }) => name)
}

/**
 * Where the advisory lock is only a name (some compatible engines), two may create the same thing at once. And workers that
 * are at work hold locks of their own, in another order.
 */
function isRace(error: unknown): boolean {
  return ['23505', '42P06', '42P07', '40001', '40P01'].includes(codeOf(error))
}
