import type { Operation } from '../../model/operation.ts'
import type { Store } from '../store.ts'
import { toOperations } from '../list-rows.ts'
import { sql, type Database } from './database.ts'
import { readJson } from './lists.ts'

const RECORD = sql(
  'operation:record',
  /* sql */ `
  INSERT INTO operation (at, actor, address, call, selection, plan, status, result)
  VALUES (:now, :actor, :address, :call, :selection, :plan, :status, :result)
`,
)
const LIST = sql(
  'operations',
  `SELECT * FROM operation WHERE id < :after ORDER BY id DESC LIMIT :limit`,
)

export function operationMethods(db: Database): Pick<Store, 'recordOperation' | 'operations'> {
  return {
    recordOperation: ({ actor, address, call, selection, plan, status, result }) =>
      db.write('operation', (tx) => {
        const asked = JSON.stringify(selection ?? null)
        const row = { actor, address, call, selection: asked, plan, status, result }
        tx.run(RECORD, { ...row, now: tx.now() })
      }),
    operations: async ({ after = Number.MAX_SAFE_INTEGER, limit }) => {
      const rows = db.read((tx) => tx.all<Operation>(LIST, { after, limit: limit + 1 }))
      const read = rows.map((row) => ({ ...row, selection: readJson(row.selection as string) }))
      return toOperations(read, limit)
    },
  }
}
