import { ms, sql, type Database } from '../../../core/store/postgres/kit.ts'
import type { Session, SessionStore } from './store.ts'

const CREATE = sql(
  'session:create',
  /* sql */ `
  INSERT INTO unstuck.http_session (id, token, token_mark, expires_at)
  VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond')
  ON CONFLICT (id) DO NOTHING
`,
)
const FIND = sql(
  'session',
  /* sql */ `
  SELECT id, token, token_mark AS "tokenMark", ${ms('created_at')} AS "createdAt", ${ms('expires_at')} AS "expiresAt"
    FROM unstuck.http_session WHERE id = $1 AND expires_at > clock_timestamp()
`,
)
const DELETE = sql('session:delete', `DELETE FROM unstuck.http_session WHERE id = $1 RETURNING id`)
const PRUNE = sql(
  'session:prune',
  `DELETE FROM unstuck.http_session WHERE expires_at <= clock_timestamp()`,
)

export function sessionMethods(db: Database): SessionStore {
  return {
    createSession: async ({ id, token, tokenMark, lastsMs }) => {
      await db.all(PRUNE)
      await db.all(CREATE, [id, token, tokenMark, lastsMs])
    },
    session: async (id) => (await db.all<Session>(FIND, [id]))[0] ?? null,
    deleteSession: async (id) => (await db.all(DELETE, [id])).length > 0,
  }
}
