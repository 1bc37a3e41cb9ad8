import { setTimeout } from 'node:timers/promises'
import type { KeptConnection } from './kept-connection.ts'

/** Larger ones are dropped: deleted rows stay in the files. */
const SIZE_MAX = 4_000_000
/** A session is listed for a moment after its connection was closed. */
const LOOKS = 5

/** Changes with every definition, right, setting, statistic and migration; not with the rows of other tables. */
const FINGERPRINT = /* sql */ `
  SELECT concat_ws(' ',
           (SELECT sum(hashtext(concat(oid, xmin))) FROM pg_class WHERE oid >= 16384),
           (SELECT sum(hashtext(concat(attrelid, attnum, xmin))) FROM pg_attribute WHERE attrelid >= 16384),
           (SELECT sum(hashtext(concat(oid, xmin))) FROM pg_trigger WHERE oid >= 16384),
           (SELECT sum(hashtext(concat(oid, xmin))) FROM pg_constraint WHERE oid >= 16384),
           (SELECT sum(hashtext(concat(oid, xmin))) FROM pg_proc WHERE oid >= 16384),
           (SELECT sum(hashtext(concat(oid, xmin))) FROM pg_namespace),
           (SELECT count(*) FROM pg_extension),
           (SELECT count(*) FROM pg_statistic WHERE starelid >= 16384),
           (SELECT sum(hashtext(xmin::text)) FROM unstuck.migration),
           (SELECT concat(datacl) FROM pg_database WHERE datname = current_database()),
           (SELECT count(*) FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
             WHERE datname = current_database())) AS fingerprint,
         (SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database()) AS sessions,
         (SELECT sum(pg_relation_size(oid))::float8 FROM pg_class WHERE oid >= 16384 AND relkind IN ('r', 'i')) AS size
`

/** Makes a copy of the template again what it was at first, which takes a fraction of the time of a new one. */
export class PostgresReset {
  readonly #fingerprint: unknown
  readonly #deleteAll: string

  /** Read from a database that no test has used yet. */
  static async read(connection: KeptConnection): Promise<PostgresReset> {
    const tables = await connection.query(/* sql */ `
      SELECT relname AS name, relkind AS kind FROM pg_class
       WHERE relnamespace = 'unstuck'::regnamespace AND relkind IN ('r', 'S') AND relname <> 'migration'
    `)
    const [now] = await connection.query(FINGERPRINT)
    const statements = tables.map(({ name, kind }) =>
      kind === 'r'
        ? `DELETE FROM unstuck.${String(name)}`
        : `SELECT setval('unstuck.${String(name)}', 1, false)`,
    )
    return new PostgresReset(now!['fingerprint'], statements)
  }

  private constructor(fingerprint: unknown, statements: readonly string[]) {
    this.#fingerprint = fingerprint
    // As a replica: without the triggers and foreign keys.
    this.#deleteAll = `BEGIN; SET LOCAL session_replication_role = replica; ${statements.join('; ')}; COMMIT`
  }

  /** Returns false if more than rows has changed, or if the database is still in use. */
  async apply(connection: KeptConnection): Promise<boolean> {
    for (let look = 1; look <= LOOKS; look++) {
      const [now] = await connection.query(FINGERPRINT)
      if (now!['fingerprint'] !== this.#fingerprint || Number(now!['size']) > SIZE_MAX) return false
      if (now!['sessions'] === 1) {
        await connection.query(this.#deleteAll)
        return true
      }
      await setTimeout(look * 5)
    }
    return false
  }
}
