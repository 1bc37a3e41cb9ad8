import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { openStore } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import { SQLITE_TRANSITION_CHECKS } from './legal-transitions.ts'
import { disposeAll, type Engine, type TestDatabase } from './test-database.ts'

export const sqliteEngine: Engine = {
  name: 'sqlite',
  rejectsNul: false,
  presence: 'file',
  placeholder: () => '?',
  empty: async () => database(),
  async fresh() {
    template ??= await readTemplate()
    const fresh = database()
    writeFileSync(fresh.url.slice('sqlite:'.length), template, { mode: 0o600 })
    return fresh
  },
}

/** The bytes of a migrated database: a copy takes a sixth of the CPU time of the migrations. */
let template: Buffer | undefined

async function readTemplate(): Promise<Buffer> {
  const path = process.env['UNSTUCK_TEST_SQLITE_TEMPLATE']
  if (path) return readFileSync(path)
  using folder = temporaryFolder()
  const made = join(folder.path, 'unstuck.db')
  await prepare(made)
  return readFileSync(made)
}

/** Creates the file with what every test begins with. */
export async function prepare(path: string): Promise<void> {
  await (await openStore(`sqlite:${path}`)).close()
  const db = new DatabaseSync(path)
  db.exec(SQLITE_TRANSITION_CHECKS)
  db.close()
}

/** A folder that goes when the test ends. */
export function temporaryFolder(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'unstuck-test-'))
  return {
    path,
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }),
  }
}

function database(): TestDatabase {
  const folder = temporaryFolder()
  const path = join(folder.path, 'unstuck.db')
  const stores: Store[] = []

  const raw = async (text: string): Promise<Record<string, unknown>[]> => {
    const db = new DatabaseSync(path, { timeout: 10_000 })
    try {
      if (/^\s*(SELECT|PRAGMA|EXPLAIN)/i.test(text)) return db.prepare(text).all()
      db.exec(text)
      return []
    } finally {
      db.close()
    }
  }

  return {
    url: `sqlite:${path}`,
    open: async () => {
      const store = await openStore(`sqlite:${path}`)
      stores.push(store)
      return store
    },
    table: (name) => name,
    raw,
    advanceClock: async (ms) => {
      const columns = await raw(/* sql */ `
        SELECT m.name AS tbl, c.name AS col FROM sqlite_schema m JOIN pragma_table_info(m.name) c
         WHERE m.type = 'table' AND (c.name LIKE '%\\_at' ESCAPE '\\' OR c.name LIKE '%\\_uptime' ESCAPE '\\'
                                  OR c.name IN ('at', 'since', 'unlocking_since'))
      `)
      const moves = columns.map(({ tbl, col }) => `UPDATE ${tbl} SET ${col} = ${col} - ${ms}`)
      await raw(`BEGIN IMMEDIATE; ${moves.join(';\n')}; COMMIT`)
    },
    [Symbol.asyncDispose]: () => disposeAll(stores, () => folder[Symbol.dispose]()),
  }
}
