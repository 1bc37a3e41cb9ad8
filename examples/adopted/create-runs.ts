// An app with its own runs table: one run is active, and three more rows have the status `running` although their
// processes died yesterday. Beside it are the checkpoint files of its scraper.
//
//   node create-runs.ts        makes app.db and checkpoints/ in the current folder
//
// Nothing here uses Unstuck. The `unstuck.config.ts` beside it was written by `unstuck adopt --db sqlite:app.db --write`;
// only the line with the checkpoint files was enabled.
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

const HOUR_MS = 3_600_000
const hoursAgo = (hours: number): string =>
  new Date(Date.now() - hours * HOUR_MS).toISOString().slice(0, 19).replace('T', ' ')

const db = new DatabaseSync('app.db')
db.exec(`
  CREATE TABLE runs (
    id                      INTEGER PRIMARY KEY,
    portal_name             TEXT NOT NULL,
    status                  TEXT NOT NULL,
    started_at              TEXT DEFAULT CURRENT_TIMESTAMP,
    completed_at            TEXT,
    extracted_total_tenders INTEGER,
    error                   TEXT
  )
`)
const insert = db.prepare(
  'INSERT INTO runs (portal_name, status, started_at, completed_at, extracted_total_tenders, error) VALUES (?, ?, ?, ?, ?, ?)',
)
insert.run('ted', 'completed', hoursAgo(54), hoursAgo(52), 812, null)
insert.run('bund', 'failed', hoursAgo(53), hoursAgo(53), 0, 'the portal answered 503')
insert.run('ted', 'running', hoursAgo(30), null, 240, null) // killed by a deploy, with something saved
insert.run('simap', 'running', hoursAgo(29), null, null, null) // killed before it counted, but it left a checkpoint
insert.run('bund', 'running', hoursAgo(28), null, null, null) // killed at its start
insert.run('dtvp', 'running', hoursAgo(0.095), null, null, null) // active
db.close()

mkdirSync('checkpoints')
const leave = (file: string, text: string, hours: number): void => {
  writeFileSync(file, text)
  const at = new Date(Date.now() - hours * HOUR_MS)
  utimesSync(file, at, at)
}
leave('checkpoints/4.json', JSON.stringify({ page: 17, lastId: 'simap-2291' }), 27)
leave('checkpoints/5.json', '', 28) // an empty file is no checkpoint
