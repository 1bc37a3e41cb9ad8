import type { Store } from '../../core/store/store.ts'

/**
 * One row for each page that was committed, written through the page's own transaction. It has no unique key: where
 * the items' key would hide that a page was saved twice, two rows here show it.
 */
export type Ledger = {
  rows(): Promise<LedgerRow[]>
  close(): Promise<void>
}

export type LedgerRow = { readonly target: string; readonly page: number }

export const LEDGER = 'unstuck_demo_ledger'

const CREATE = /* sql */ `
  CREATE TABLE IF NOT EXISTS ${LEDGER} (source text NOT NULL, target text NOT NULL, page integer NOT NULL)
`
export const INSERT_PAGE = {
  sqlite: `INSERT INTO ${LEDGER} (source, target, page) VALUES (?, ?, ?)`,
  postgres: `INSERT INTO ${LEDGER} (source, target, page) VALUES ($1, $2, $3)`,
} as const
const ROWS = {
  sqlite: `SELECT target, page FROM ${LEDGER} WHERE source = ?`,
  postgres: `SELECT target, page FROM ${LEDGER} WHERE source = $1`,
} as const

/** Makes the table where it is not there yet. The store has been opened before, so the database exists. */
export async function openLedger(
  engine: Store['engine'],
  address: string,
  source: string,
): Promise<Ledger> {
  return engine === 'sqlite' ? openSqlite(address, source) : openPostgres(address, source)
}

async function openSqlite(address: string, source: string): Promise<Ledger> {
  const { DatabaseSync } = await import('node:sqlite')
  const db = new DatabaseSync(address.slice('sqlite:'.length), { timeout: 10_000 })
  db.exec(CREATE)
  return {
    rows: async () => db.prepare(ROWS.sqlite).all(source) as LedgerRow[],
    close: async () => db.close(),
  }
}

async function openPostgres(address: string, source: string): Promise<Ledger> {
  const { Pool } = await import('pg')
  const pool = new Pool({ connectionString: address, max: 1 })
  pool.on('error', () => {})
  await pool.query(CREATE)
  return {
    rows: async () => (await pool.query<LedgerRow>(ROWS.postgres, [source])).rows,
    close: () => pool.end(),
  }
}
