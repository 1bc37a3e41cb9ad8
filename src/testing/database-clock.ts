import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'

/** Moves the time of a database: whatever has happened so far is that much longer ago. */
export type DatabaseClock = AsyncDisposable & { advance(ms: number): Promise<void> }

/** For pictures that took days: one connection is kept for many moves. */
export async function openDatabaseClock(url: string): Promise<DatabaseClock> {
  return url.startsWith('sqlite:') ? sqliteClock(url.slice('sqlite:'.length)) : postgresClock(url)
}

function sqliteClock(path: string): DatabaseClock {
  const db = new DatabaseSync(path, { timeout: 10_000 })
  db.exec('PRAGMA synchronous = OFF')
  const columns = db.prepare(/* sql */ `
    SELECT m.name AS tbl, c.name AS col FROM sqlite_schema m JOIN pragma_table_info(m.name) c
     WHERE m.type = 'table' AND (c.name LIKE '%\\_at' ESCAPE '\\' OR c.name LIKE '%\\_uptime' ESCAPE '\\'
                              OR c.name IN ('at', 'since', 'unlocking_since'))
  `)
  return makeClock({
    columns: columns.all(),
    table: (name) => name,
    span: String,
    run: async (script) => db.exec(script),
    close: async () => db.close(),
  })
}

async function postgresClock(url: string): Promise<DatabaseClock> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(/* sql */ `
    SELECT table_name AS tbl, column_name AS col FROM information_schema.columns
     WHERE table_schema = 'unstuck' AND data_type = 'timestamp with time zone'
       AND table_name IN (SELECT tablename FROM pg_tables WHERE schemaname = 'unstuck')
  `)
  return makeClock({
    columns: rows,
    table: (name) => `unstuck.${name}`,
    span: (ms) => `interval '${ms} milliseconds'`,
    run: async (script) => void (await client.query(script)),
    close: () => client.end(),
  })
}

type ClockParts = {
  columns: readonly Record<string, unknown>[]
  table(name: string): string
  span(ms: number): string
  run(script: string): Promise<void>
  close(): Promise<void>
}

/** Times of items matter only by the hour, and there are many: they are moved only for large steps. */
const MOVE_ITEMS_FROM_MS = 600_000

function makeClock({ columns, table, span, run, close }: ClockParts): DatabaseClock {
  const tables = Map.groupBy(columns, ({ tbl }) => String(tbl))
  let owedToItems = 0
  const move = (names: readonly string[], ms: number): string[] =>
    names.map((name) => {
      const moved = tables
        .get(name)!
        .map(({ col }) => `${String(col)} = ${String(col)} - ${span(ms)}`)
      return `UPDATE ${table(name)} SET ${moved.join(', ')}`
    })
  const others = [...tables.keys()].filter((name) => name !== 'item')
  const later = async (ms: number): Promise<void> => {
    owedToItems += ms
    const moves = move(others, ms)
    if (owedToItems >= MOVE_ITEMS_FROM_MS || ms === 0) {
      moves.push(...move(['item'], owedToItems))
      owedToItems = 0
    }
    await run(`BEGIN; ${moves.join(';\n')}; COMMIT`)
  }
  return {
    advance: later,
    async [Symbol.asyncDispose]() {
      await later(0)
      await close()
    },
  }
}
