import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
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

export function raw(db: string, atOnce: number, ms: number): Promise<number> {
  return db.startsWith('sqlite:') ? rawSqlite(db, atOnce, ms) : rawPostgres(db, atOnce, ms)
}

function openRaw(db: string): DatabaseSync {
  const raw = new DatabaseSync(db.slice('sqlite:'.length), { timeout: 10_000 })
  raw.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000')
  return raw
}

async function rawSqlite(file: string, atOnce: number, ms: number): Promise<number> {
  const db = openRaw(file)
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
  const end = performance.now() + ms
  let saved = 0
  while (performance.now() < end) {
    const target = targets[saved % atOnce]!
    const page = target.seq + 1
    db.exec('BEGIN IMMEDIATE')
    if (
      advance.run(
        page,
        `https://directory.example/?page=${page + 1}`,
        target.id,
        target.claim,
        target.seq,
      ).changes !== 1
    ) {
      throw new Error('fenced')
    }
    for (const { url, data } of pageItems(target.id, page)) save.run(url, JSON.stringify(data))
    db.exec('COMMIT')
    target.seq++
    saved++
  }
  db.close()
  return saved
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

async function rawPostgres(db: string, atOnce: number, ms: number): Promise<number> {
  const pool = new pg.Pool({ connectionString: db, max: atOnce })
  const end = performance.now() + ms
  let saved = 0
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      const [id, claim] = [randomUUID(), randomUUID()]
      await pool.query(`INSERT INTO raw_target VALUES ($1, 1, $2, 'in_progress', 0, 0, NULL)`, [
        id,
        claim,
      ])
      for (let seq = 0; performance.now() < end; seq++) {
        const page = seq + 1
        const values = [
          page,
          `https://directory.example/?page=${page + 1}`,
          id,
          claim,
          seq,
          JSON.stringify(pageItems(id, page)),
        ]
        const { rowCount } = await pool.query({ name: 'raw', text: STATEMENT, values })
        if (rowCount !== 1) throw new Error('fenced')
        saved++
      }
    }),
  )
  await pool.end()
  return saved
}
