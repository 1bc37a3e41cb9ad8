import type { Operation } from '../../model/operation.ts'
import type { Store } from '../store.ts'
import { toOperations } from '../list-rows.ts'
import { ms, sql, type Database } from './database.ts'
import { stripNul, stripNulJson } from './strip-nul.ts'

const RECORD = sql(
  'operation:record',
  /* sql */ `
  INSERT INTO unstuck.operation (actor, address, call, selection, plan, status, result)
  VALUES ($1, $2, $3, $4, $5, $6, $7)
`,
)
const LIST = sql(
  'operations',
  /* sql */ `
  SELECT id::float8 AS id, ${ms('at')} AS at, actor, address, call, selection, plan, status, result
    FROM unstuck.operation WHERE id < $1 ORDER BY operation.id DESC LIMIT $2
`,
)

export function operationMethods(db: Database): Pick<Store, 'recordOperation' | 'operations'> {
  return {
    recordOperation: async ({ actor, address, call, selection, plan, status, result }) => {
      const asked = stripNulJson(selection ?? null)
      const [who, what, came] = [actor, call, result].map(stripNul)
      const [where, which] = [address && stripNul(address), plan && stripNul(plan)]
      await db.all(RECORD, [who, where, what, asked, which, status, came])
    },
    operations: async ({ after = Number.MAX_SAFE_INTEGER, limit }) =>
      toOperations(await db.all<Operation>(LIST, [after, limit + 1]), limit),
  }
}
