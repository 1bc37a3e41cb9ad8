import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'

/** Moves the time of a database: whatever has happened so far is that much longer ago. */
export type TimeMachine = AsyncDisposable & { later(ms: number): Promise<void> }

/** For pictures that took days: one connection is kept for many moves. */
export async function timeMachine(url: string): Promise<TimeMachine> {
  return url.startsWith('sqlite:') ? ofFile(url.slice('sqlite:'.length)) : ofServer(url)
}

function ofFile(path: string): TimeMachine {
  const db = new DatabaseSync(path, { timeout: 10_000 })
  db.exec('PRAGMA synchronous = OFF')
  const columns = db.prepare(/* sql */ `
    SELECT m.name AS tbl, c.name AS col FROM sqlite_schema m JOIN pragma_table_info(m.name) c
     WHERE m.type = 'table' AND (c.name LIKE '%\\_at' ESCAPE '\\' OR c.name LIKE '%\\_uptime' ESCAPE '\\'
                              OR c.name IN ('at', 'since', 'ending_since'))
  `)
  return machine({
    columns: columns.all(),
    table: (name) => name,
    span: String,
    run: async (script) => db.exec(script),
    close: async () => db.close(),
  })
}

async function ofServer(url: string): Promise<TimeMachine> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(/* sql */ `
    SELECT table_name AS tbl, column_name AS col FROM information_schema.columns
     WHERE table_schema = 'unstuck' AND data_type = 'timestamp with time zone'
  `)
  return machine({
    columns: rows,
    table: (name) => `unstuck.${name}`,
    span: (ms) => `interval '${ms} milliseconds'`,
    run: async (script) => void (await client.query(script)),
    close: () => client.end(),
  })
}

type Parts = {
  columns: readonly Record<string, unknown>[]
  table(name: string): string
  span(ms: number): string
  run(script: string): Promise<void>
  close(): Promise<void>
}

/** Items are many, and nobody looks at their minutes: they are moved when it is worth it. */
const ITEMS_MOVE_FROM_MS = 600_000

function machine({ columns, table, span, run, close }: Parts): TimeMachine {
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
    if (owedToItems >= ITEMS_MOVE_FROM_MS || ms === 0) {
      moves.push(...move(['item'], owedToItems))
      owedToItems = 0
    }
    await run(`BEGIN; ${moves.join(';\n')}; COMMIT`)
  }
  return {
    later,
    async [Symbol.asyncDispose]() {
      await later(0)
      await close()
    },
  }
}
