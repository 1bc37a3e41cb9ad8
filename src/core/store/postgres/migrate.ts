import { assertKnown, FIRST_VERSION, type Migration } from '../schema-version.ts'
import { sql, type Connection } from './database.ts'
import { codeOf } from './errors.ts'
import { initial } from './migrations/101-initial.ts'
import { views } from './migrations/102-views.ts'
import { checkpointFunction } from './migrations/103-checkpoint-function.ts'

export const MIGRATIONS: readonly Migration[] = [
  { number: FIRST_VERSION, name: 'initial', text: initial },
  { number: 102, name: 'views', text: views },
  { number: 103, name: 'checkpoint-function', text: checkpointFunction },
]

const HAS_SCHEMA = sql('migrate:has-schema')`
  SELECT to_regclass('unstuck.migration') IS NOT NULL AS found
`
const VERSION = sql('migrate:version')`
  SELECT coalesce(max(number), 0)::int AS number FROM unstuck.migration
`
// An arbitrary number that no other program is likely to use.
const LOCK = sql('migrate:lock')`SELECT pg_advisory_xact_lock(7166254318094)`
const CREATE = /* sql */ `
  SET LOCAL lock_timeout = '5s';
  CREATE SCHEMA IF NOT EXISTS unstuck;
  CREATE TABLE IF NOT EXISTS unstuck.migration (
    number              integer PRIMARY KEY,
    name                text NOT NULL DEFAULT '',
    min_program_version integer NOT NULL,        -- programs that know only an older schema finish their pages and end
    applied_at          timestamptz NOT NULL DEFAULT clock_timestamp()
  );
`
const RECORD = sql('migrate:record')`
  INSERT INTO unstuck.migration (number, name, min_program_version) VALUES ($1, $2, ${FIRST_VERSION})
`

export const SCHEMA_VERSION = MIGRATIONS.at(-1)!.number

const TRIES = 5

/** Brings the schema up to date, forward only. If nothing is pending, it writes nothing and needs no rights. */
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
  // Another process may have applied them while this one waited for the lock.
  const current = await version(connection)
  for (const { number, name, text } of MIGRATIONS) {
    if (number <= current) continue
    await connection.exec(`migrate:${name}`, text)
    await connection.all(RECORD, [number, name])
  }
}

/** Returns the schema's version, 0 where there is none. Throws if this program cannot use it. */
export async function version(connection: Connection): Promise<number> {
  const number = await foundVersion(connection)
  assertKnown(number, SCHEMA_VERSION)
  return number
}

/** Returns the schema's version, whether this program knows it or not; 0 where there is none. */
export async function foundVersion(connection: Connection): Promise<number> {
  const [schema] = await connection.all<{ found: boolean }>(HAS_SCHEMA)
  if (!schema!.found) return 0
  const [row] = await connection.all<{ number: number }>(VERSION)
  return row!.number
}

/**
 * On compatible engines where the advisory lock has no effect, two processes may create the same object at once. Workers
 * also hold locks of their own, in another order.
 */
function isRace(error: unknown): boolean {
  return ['23505', '42P06', '42P07', '40001', '40P01'].includes(codeOf(error))
}
