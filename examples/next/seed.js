// The app's table with two runs at work: one has been so for ten minutes, though its process was killed by a deploy.
//
//   node seed.js && npm run dev
import { openDatabase } from './runs.js'

using db = openDatabase()
db.exec(`
  CREATE TABLE IF NOT EXISTS qualification_runs (
    "id" TEXT PRIMARY KEY,
    "status" TEXT NOT NULL DEFAULT 'PENDING',
    "completed" INTEGER NOT NULL DEFAULT 0,
    "total" INTEGER NOT NULL DEFAULT 0,
    "createdAt" DATETIME NOT NULL,
    "completedAt" DATETIME,
    "errorMessage" TEXT,
    "results" TEXT
  )
`)
const insert = db.prepare(`
  INSERT OR REPLACE INTO qualification_runs ("id", "status", "completed", "total", "createdAt", "results")
  VALUES (?, 'PROCESSING', 0, 1, ?, ?)
`)
const MINUTE_MS = 60_000
insert.run('stuck', Date.now() - 10 * MINUTE_MS, '[{"lead":"Acme","score":7}]')
insert.run('young', Date.now() - 2 * MINUTE_MS, null)
