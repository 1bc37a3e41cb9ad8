import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { Prepare } from './contender.ts'
import { pageItems } from './page.ts'

// The same work without Unstuck: a fenced update of the target and ten upserts, in one transaction, durable. No books,
// no content hash, no canonical addresses, no versions of items.

const TABLES = (json: string, id: string): string => `
  CREATE TABLE raw_target (id ${id} PRIMARY KEY, epoch INTEGER NOT NULL, claim_id ${id} NOT NULL, status TEXT NOT NULL,
                           seq INTEGER NOT NULL, page INTEGER NOT NULL, next_url TEXT);
  CREATE TABLE raw_item (source TEXT NOT NULL, key TEXT NOT NULL, data ${json} NOT NULL, PRIMARY KEY (source, key));
`

export async function prepareRaw(db: string): Promise<void> {
  if (db.startsWith('sqlite:')) {
    const raw = openRaw(db)
    raw.exec(TABLES('TEXT', 'TEXT'))
    raw.close()
    return
  }
  const client = new pg.Client({ connectionString: db })
  await client.connect()
  await client.query(TABLES('jsonb', 'uuid'))
  await client.end()
}

/** Both engines' raw way. */
export const raw: Prepare = (db, atOnce) =>
  db.startsWith('sqlite:') ? rawSqlite(db, atOnce) : rawPostgres(db, atOnce)

function openRaw(db: string): DatabaseSync {
  const raw = new DatabaseSync(db.slice('sqlite:'.length), { timeout: 10_000 })
  raw.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000')
  return raw
}

const rawSqlite: Prepare = async (file, atOnce) => {
  const db = openRaw(file)
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const advance = db.prepare(`
    UPDATE raw_target SET seq = seq + 1, page = ?, next_url = ?
     WHERE id = ? AND epoch = 1 AND claim_id = ? AND status = 'in_progress' AND seq = ?`)
  const save = db.prepare(`
    INSERT INTO raw_item (source, key, data) VALUES ('bench', ?, ?)
    ON CONFLICT (source, key) DO UPDATE SET data = excluded.data`)
  const insert = db.prepare(`INSERT INTO raw_target VALUES (?, 1, ?, 'in_progress', 0, 0, NULL)`)
  const targets = Array.from({ length: atOnce }, () => ({
    id: randomUUID(),
    claim: randomUUID(),
    seq: 0,
  }))
  for (const { id, claim } of targets) insert.run(id, claim)
  return {
    run: async (until) => {
      let saved = 0
      while (Date.now() < until) {
        const target = targets[saved % atOnce]!
        const page = target.seq + 1
        begin.run()
        const { changes } = advance.run(page, nextUrl(page), target.id, target.claim, target.seq)
        if (changes !== 1) throw new Error('fenced')
        for (const { url, data } of pageItems(target.id, page)) save.run(url, JSON.stringify(data))
        commit.run()
        target.seq++
        saved++
      }
      return saved
    },
    close: async () => db.close(),
  }
}

function nextUrl(page: number): string {
  return `https://directory.example/?page=${page + 1}`
}

const STATEMENT = `
  WITH advanced AS (
    UPDATE raw_target SET seq = seq + 1, page = $1, next_url = $2
     WHERE id = $3 AND epoch = 1 AND claim_id = $4 AND status = 'in_progress' AND seq = $5
    RETURNING seq
  ), saved AS (
    INSERT INTO raw_item (source, key, data)
    SELECT 'bench', i.url, i.data FROM json_to_recordset($6::json) AS i (url text, data jsonb), advanced
    ON CONFLICT (source, key) DO UPDATE SET data = excluded.data
  )
  SELECT seq FROM advanced
`

const rawPostgres: Prepare = async (db, atOnce) => {
  const pool = new pg.Pool({ connectionString: db, max: atOnce })
  const targets = Array.from({ length: atOnce }, () => ({
    id: randomUUID(),
    claim: randomUUID(),
    seq: 0,
  }))
  for (const { id, claim } of targets) {
    await pool.query(`INSERT INTO raw_target VALUES ($1, 1, $2, 'in_progress', 0, 0, NULL)`, [
      id,
      claim,
    ])
  }
  return {
    run: async (until) => {
      let saved = 0
      await Promise.all(
        targets.map(async (target) => {
          for (; Date.now() < until; target.seq++) {
            const page = target.seq + 1
            const items = JSON.stringify(pageItems(target.id, page))
            const values = [page, nextUrl(page), target.id, target.claim, target.seq, items]
            const { rowCount } = await pool.query({ name: 'raw', text: STATEMENT, values })
            if (rowCount !== 1) throw new Error('fenced')
            saved++
          }
        }),
      )
      return saved
    },
    close: () => pool.end(),
  }
}
