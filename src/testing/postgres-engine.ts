import process from 'node:process'
import { openStore } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import { KeptConnection } from './kept-connection.ts'
import { POSTGRES_TRANSITION_CHECKS } from './legal-transitions.ts'
import { createDatabase } from './postgres.ts'
import { PostgresReset } from './postgres-reset.ts'
import { disposeAll, type Engine, type TestDatabase } from './test-database.ts'

export const postgresEngine: Engine = {
  name: 'postgres',
  rejectsNul: true,
  presence: 'session',
  placeholder: (n) => `$${n}`,
  empty: async () => testDatabase(await create()),
  async fresh() {
    const template = configuredTemplate()
    if (template) return freshCopy(template)
    const fresh = await create()
    await prepare(fresh.url)
    return testDatabase(fresh)
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
  const connection = new KeptConnection(url)
  await connection.query(POSTGRES_TRANSITION_CHECKS)
  await connection.close()
}

type Database = {
  readonly url: string
  readonly connection: KeptConnection
  drop(): Promise<void>
}

async function create(template?: string): Promise<Database> {
  const { url, drop } = await createDatabase(undefined, template)
  const connection = new KeptConnection(url)
  const dropClosed = async (): Promise<void> => {
    await connection.close()
    await drop()
  }
  return { url, connection, drop: dropClosed }
}

/** Databases that earlier tests of this process have left as they found them. */
const unused: Database[] = []
let reset: PostgresReset | undefined

async function freshCopy(template: string): Promise<TestDatabase> {
  const database = unused.pop() ?? (await create(template))
  reset ??= await PostgresReset.read(database.connection)
  const undo = reset
  return testDatabase(database, async () => {
    if (await undo.apply(database.connection).catch(() => false)) keep(database)
    else await database.drop()
  })
}

function keep(database: Database): void {
  if (unused.push(database) > 1) return
  process.once('beforeExit', () => {
    for (const { drop } of unused.splice(0)) void drop().catch(() => {})
  })
}

function testDatabase(database: Database, release = database.drop): TestDatabase {
  const { url, connection } = database
  const stores: Store[] = []
  const raw = (text: string): Promise<Record<string, unknown>[]> => connection.query(text)

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
      timeColumns ??= await raw(/* sql */ `
        SELECT table_name AS tbl, column_name AS col FROM information_schema.columns
         WHERE table_schema = 'unstuck' AND data_type = 'timestamp with time zone'
           AND table_name IN (SELECT tablename FROM pg_tables WHERE schemaname = 'unstuck')
      `)
      const moves = timeColumns.map(
        ({ tbl, col }) =>
          `UPDATE unstuck.${tbl} SET ${col} = ${col} - interval '${ms} milliseconds'`,
      )
      await raw(`BEGIN; ${moves.join(';\n')}; COMMIT`)
    },
    [Symbol.asyncDispose]: () => disposeAll(stores, release),
  }
}

let timeColumns: Record<string, unknown>[] | undefined
