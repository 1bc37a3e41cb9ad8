import { sql, type Database } from '../../../core/store/sqlite/kit.ts'
import type { Session, SessionStore } from './store.ts'

const CREATE = sql(
  'session:create',
  /* sql */ `
  INSERT INTO http_session (id, token, token_mark, created_at, expires_at)
  VALUES (:id, :token, :tokenMark, :now, :now + :lastsMs)
  ON CONFLICT (id) DO NOTHING
`,
)
const FIND = sql(
  'session',
  /* sql */ `
  SELECT id, token, token_mark AS tokenMark, created_at AS createdAt, expires_at AS expiresAt
    FROM http_session WHERE id = :id AND expires_at > :now
`,
)
const DELETE = sql('session:delete', `DELETE FROM http_session WHERE id = :id`)
const PRUNE = sql('session:prune', `DELETE FROM http_session WHERE expires_at <= :now`)

export function sessionMethods(db: Database): SessionStore {
  return {
    createSession: ({ id, token, tokenMark, lastsMs }) =>
      db.write('session', (tx) => {
        tx.run(PRUNE, { now: tx.now() })
        tx.run(CREATE, { id, token, tokenMark, lastsMs, now: tx.now() })
      }),
    session: async (id) => {
      const row = db.read((tx) => tx.get<Session>(FIND, { id, now: tx.now() }))
      return row ? { ...row } : null
    },
    deleteSession: (id) => db.write('session', (tx) => tx.run(DELETE, { id }) > 0),
  }
}
