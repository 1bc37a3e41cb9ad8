import pg from 'pg'
import { openStore } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import { POSTGRES_TRANSITION_CHECKS } from './legal-transitions.ts'
import { createDatabase } from './postgres.ts'
import { disposeAll, type Engine, type TestDatabase } from './test-database.ts'

export const postgresEngine: Engine = {
  name: 'postgres',
  rejectsNul: true,
  presence: 'session',
  placeholder: (n) => `$${n}`,
  empty: () => database(),
  async fresh() {
    const template = configuredTemplate()
    if (template) return database(template)
    const fresh = await database()
    await prepare(fresh.url)
    return fresh
  },
}

/** The one that `npm run unit` has prepared, unless this test has a server of its own. */
function configuredTemplate(): string | undefined {
  const { UNSTUCK_TEST_PG: server = '', UNSTUCK_TEST_TEMPLATE: template = '' } = process.env
  const isThere = URL.parse(template)?.host === URL.parse(server)?.host
  return template && isThere ? new URL(template).pathname.slice(1) : undefined
}

/** Makes it what every test begins with. Copies of one that was prepared take half the time. */
export async function prepare(url: string): Promise<void> {
  await (await openStore(url, { connections: 1 })).close()
  await query(url, POSTGRES_TRANSITION_CHECKS)
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const result = await client.query<Record<string, unknown>>(text)
    return result.rows ?? []
  } finally {
    await client.end()
  }
}

async function database(template?: string): Promise<TestDatabase> {
  const { url, drop } = await createDatabase(undefined, template)
  const stores: Store[] = []

  const raw = (text: string): Promise<Record<string, unknown>[]> => query(url, text)

  return {
    url,
    open: async () => {
      const store = await openStore(url)
      stores.push(store)
      return store
    },
    table: (name) => `unstuck.${name}`,
    raw,
    advanceClock: async (ms) => {
      const columns = await raw(/* sql */ `
        SELECT table_name AS tbl, column_name AS col FROM information_schema.columns
         WHERE table_schema = 'unstuck' AND data_type = 'timestamp with time zone'
      `)
      const moves = columns.map(
        ({ tbl, col }) =>
          `UPDATE unstuck.${tbl} SET ${col} = ${col} - interval '${ms} milliseconds'`,
      )
      await raw(`BEGIN; ${moves.join(';\n')}; COMMIT`)
    },
    [Symbol.asyncDispose]: () => disposeAll(stores, drop),
  }
}
