import { DatabaseSync } from 'node:sqlite'

/** The app's own database. It knows nothing of Unstuck. */
export const openDatabase = () =>
  new DatabaseSync((process.env['APP_DB'] ?? 'sqlite:app.db').slice('sqlite:'.length))

export function listRuns() {
  const db = openDatabase()
  try {
    return db.prepare('SELECT * FROM qualification_runs ORDER BY "createdAt" DESC LIMIT 50').all()
  } finally {
    db.close()
  }
}
