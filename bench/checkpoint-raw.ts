import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { ClaimedTarget } from '../src/core/model/claim.ts'
import { openStore } from '../src/core/store/open.ts'
import type { Prepare } from './contender.ts'
import { registerClaimer } from './workers.ts'
import { pageItems } from './page.ts'

// The same transaction on the same tables by the driver alone: the fenced update of the target, then ten upserts, durable.
// Without all that Unstuck adds: no books, no hash of the content, no canonical addresses, no outcomes.

/** Both engines' raw way. */
export const raw: Prepare = (db, atOnce) =>
  db.startsWith('sqlite:') ? rawSqlite(db, atOnce) : rawPostgres(db, atOnce)

type Target = ClaimedTarget & { at: number }

async function claimTargets(db: string, count: number): Promise<Target[]> {
  const store = await openStore(db)
  const claim = await registerClaimer(store)
  const claimed = await claim(count)
  await store.close()
  return claimed.map((target) => ({ ...target, at: 0 }))
}

function nextUrl(page: number): string {
  return `https://directory.example/?page=${page + 1}`
}

const rawSqlite: Prepare = async (address, atOnce) => {
  const targets = await claimTargets(address, atOnce)
  const db = new DatabaseSync(address.slice('sqlite:'.length), { timeout: 10_000 })
  db.exec('PRAGMA synchronous = FULL; PRAGMA cache_size = -16000')
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const advance = db.prepare(`
    UPDATE target SET checkpoint_seq = checkpoint_seq + 1, page = ?5, next_url = ?6, last_activity_at = ?7
     WHERE id = ?1 AND epoch = ?2 AND claim_id = ?3 AND status = 'in_progress' AND checkpoint_seq = ?4`)
  const save = db.prepare(`
    INSERT INTO item (source, key, key_version, url, data, run_id, first_seen_at, last_seen_at, changed_at)
    VALUES ('bench', ?1, 1, NULL, ?2, ?3, ?4, ?4, ?4)
    ON CONFLICT (source, key) DO UPDATE SET data = excluded.data, last_seen_at = excluded.last_seen_at`)
  return {
    run: async (until) => {
      let saved = 0
      while (Date.now() < until) {
        const target = targets[saved % atOnce]!
        const page = target.at + 1
        const now = Date.now()
        const fence = [target.target, target.epoch, target.claimId, target.at]
        begin.run()
        if (advance.run(...fence, page, nextUrl(page), now).changes !== 1) throw new Error('fenced')
        for (const { url, data } of pageItems(target.target, page)) {
          save.run(url, JSON.stringify(data), target.run, now)
        }
        commit.run()
        target.at++
        saved++
      }
      return saved
    },
    close: async () => db.close(),
  }
}

const STATEMENT = `
  WITH advanced AS (
    UPDATE unstuck.target SET checkpoint_seq = checkpoint_seq + 1, page = $5, next_url = $6, last_activity_at = clock_timestamp()
     WHERE id = $1 AND epoch = $2 AND claim_id = $3 AND status = 'in_progress' AND checkpoint_seq = $4
    RETURNING checkpoint_seq, run_id
  ), saved AS (
    INSERT INTO unstuck.item (source, key, key_version, data, changed_in, run_id)
    SELECT 'bench', i.url, 1, i.data, $7, a.run_id
      FROM json_to_recordset($8::json) AS i (url text, data jsonb), advanced a
    ON CONFLICT (source, key) DO UPDATE SET data = excluded.data, last_seen_at = excluded.last_seen_at
  )
  SELECT checkpoint_seq FROM advanced
`

const rawPostgres: Prepare = async (db, atOnce) => {
  const targets = await claimTargets(db, atOnce)
  const pool = new pg.Pool({ connectionString: db, max: atOnce })
  // The server ends its sessions when the database is dropped.
  pool.on('error', () => {})
  const save = async (target: Target): Promise<void> => {
    const page = target.at + 1
    const items = JSON.stringify(pageItems(target.target, page))
    const fence = [target.target, target.epoch, target.claimId, target.at]
    const values = [...fence, page, nextUrl(page), `${target.claimId}/${page}`, items]
    const { rowCount } = await pool.query({ name: 'raw', text: STATEMENT, values })
    if (rowCount !== 1) throw new Error('fenced')
    target.at++
  }
  return {
    run: async (until) => {
      let saved = 0
      await Promise.all(
        targets.map(async (target) => {
          for (; Date.now() < until; saved++) await save(target)
        }),
      )
      return saved
    },
    close: () => pool.end(),
  }
}
