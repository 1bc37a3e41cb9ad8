import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase, startServer } from '../src/testing/postgres.ts'

export type BenchDatabase = { readonly url: string; drop(): Promise<void> }
export type BenchEngine = {
  readonly name: 'sqlite' | 'postgres'
  /** A fresh, empty database. */
  create(): Promise<BenchDatabase>
  close(): Promise<void>
}

/** The engines to measure: SQLite files in a temporary folder, and a PostgreSQL server of the bench's own. */
export async function benchEngines(names: readonly string[]): Promise<BenchEngine[]> {
  const engines: BenchEngine[] = []
  if (names.includes('sqlite')) engines.push(sqlite())
  if (names.includes('postgres')) engines.push(await postgres())
  return engines
}

function sqlite(): BenchEngine {
  return {
    name: 'sqlite',
    create: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'unstuck-bench-'))
      return {
        url: `sqlite:${join(folder, 'bench.db')}`,
        drop: async () => rmSync(folder, { recursive: true, force: true }),
      }
    },
    close: async () => {},
  }
}

async function postgres(): Promise<BenchEngine> {
  const server = await startServer()
  return {
    name: 'postgres',
    create: () => createDatabase(server.url),
    close: () => server.remove(),
  }
}
