import { readJson, sql, type Database } from '../../../core/store/sqlite/kit.ts'
import {
  toOperations,
  type Operation,
  type OperationStore,
  type Session,
  type SessionStore,
} from './store.ts'

const CREATE = sql('session:create')`
  INSERT INTO http_session (id, token, token_mark, created_at, expires_at)
  VALUES (:id, :token, :tokenMark, :now, :now + :lastsMs)
  ON CONFLICT (id) DO NOTHING
`
const FIND = sql('session')`
  SELECT id, token, token_mark AS tokenMark, created_at AS createdAt, expires_at AS expiresAt
    FROM http_session WHERE id = :id AND expires_at > :now
`
const DELETE = sql('session:delete')`DELETE FROM http_session WHERE id = :id`
const PRUNE = sql('session:prune')`DELETE FROM http_session WHERE expires_at <= :now`

const RECORD = sql('operation:record')`
  INSERT INTO operation (at, actor, address, call, selection, plan, status, result)
  VALUES (:now, :actor, :address, :call, :selection, :plan, :status, :result)
`
const OPERATIONS = sql('operations')`
  SELECT * FROM operation WHERE id < :after ORDER BY id DESC LIMIT :limit
`

export function accessMethods(db: Database): SessionStore & OperationStore {
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
    recordOperation: ({ actor, address, call, selection, plan, status, result }) =>
      db.write('operation', (tx) => {
        const asked = JSON.stringify(selection ?? null)
        const row = { actor, address, call, selection: asked, plan, status, result }
        tx.run(RECORD, { ...row, now: tx.now() })
      }),
    operations: async ({ after = Number.MAX_SAFE_INTEGER, limit }) => {
      const rows = db.read((tx) => tx.all<Operation>(OPERATIONS, { after, limit: limit + 1 }))
      const read = rows.map((row) => ({ ...row, selection: readJson(row.selection as string) }))
      return toOperations(read, limit)
    },
  }
}
