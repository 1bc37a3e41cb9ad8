import { ms, sql, stripNul, stripNulJson, type Database } from '../../../core/store/postgres/kit.ts'
import {
  toOperations,
  type Operation,
  type OperationStore,
  type Session,
  type SessionStore,
} from './store.ts'

const CREATE = sql('session:create')`
  INSERT INTO unstuck.http_session (id, token, token_mark, expires_at)
  VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond')
  ON CONFLICT (id) DO NOTHING
`
const FIND = sql('session')`
  SELECT id, token, token_mark AS "tokenMark", ${ms('created_at')} AS "createdAt", ${ms('expires_at')} AS "expiresAt"
    FROM unstuck.http_session WHERE id = $1 AND expires_at > clock_timestamp()
`
const DELETE = sql('session:delete')`DELETE FROM unstuck.http_session WHERE id = $1 RETURNING id`
const PRUNE = sql('session:prune')`
  DELETE FROM unstuck.http_session WHERE expires_at <= clock_timestamp()
`

const RECORD = sql('operation:record')`
  INSERT INTO unstuck.operation (actor, address, call, selection, plan, status, result)
  VALUES ($1, $2, $3, $4, $5, $6, $7)
`
const OPERATIONS = sql('operations')`
  SELECT id::float8 AS id, ${ms('at')} AS at, actor, address, call, selection, plan, status, result
    FROM unstuck.operation WHERE id < $1 ORDER BY operation.id DESC LIMIT $2
`

export function accessMethods(db: Database): SessionStore & OperationStore {
  return {
    createSession: async ({ id, token, tokenMark, lastsMs }) => {
      await db.all(PRUNE)
      await db.all(CREATE, [id, token, tokenMark, lastsMs])
    },
    session: async (id) => (await db.all<Session>(FIND, [id]))[0] ?? null,
    deleteSession: async (id) => (await db.all(DELETE, [id])).length > 0,
    recordOperation: async ({ actor, address, call, selection, plan, status, result }) => {
      const asked = stripNulJson(selection ?? null)
      const [who, what, came] = [actor, call, result].map(stripNul)
      const [where, which] = [address && stripNul(address), plan && stripNul(plan)]
      await db.all(RECORD, [who, where, what, asked, which, status, came])
    },
    operations: async ({ after = Number.MAX_SAFE_INTEGER, limit }) =>
      toOperations(await db.all<Operation>(OPERATIONS, [after, limit + 1]), limit),
  }
}
