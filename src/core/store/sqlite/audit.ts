import { toAuditEntry, type AuditRow } from '../rows.ts'
import type { NewAuditEntry, Store } from '../store.ts'
import { sql, type Connection, type Database } from './database.ts'
import { readJson } from './lists.ts'

const RECORD = sql('audit:record')`
  INSERT INTO audit (at, actor, action, source, run_id, target_id, because, evidence, before, after)
  VALUES (:at, :actor, :action, :source, :run, :target, :because, :evidence, :before, :after)
`
const LIST = (name: string, where: string, order: string) =>
  sql(`audit:${name}`)`
  SELECT *, (SELECT key FROM target WHERE id = audit.target_id) AS key FROM audit
   WHERE ${where} AND at >= :since AND (:source IS NULL OR source = :source)
   ORDER BY ${order} LIMIT :limit
`
const FORWARD = LIST('forward', 'id > :after', 'id')
const BACKWARD = LIST('backward', 'id < :after', 'id DESC')
const OF_RUN = 'run_id = :run AND (:target IS NULL OR target_id = :target)'
const OF_RUN_FORWARD = LIST('run-forward', `${OF_RUN} AND id > :after`, 'id')
const OF_RUN_BACKWARD = LIST('run-backward', `${OF_RUN} AND id < :after`, 'id DESC')
/** Enters what was done into the trail, in the transaction that does it. */
export function recordAudit(tx: Connection, entry: NewAuditEntry): void {
  tx.run(RECORD, {
    at: tx.now(),
    target: null,
    ...entry,
    evidence: JSON.stringify(entry.evidence ?? null),
    before: JSON.stringify(entry.before),
    after: JSON.stringify(entry.after),
  })
}

export function auditMethods(db: Database): Pick<Store, 'audit'> {
  return {
    audit: async ({ run, target = null, newestFirst, ...filter }) => {
      const { source = null, since = 0, limit } = filter
      const after = filter.after ?? (newestFirst ? Number.MAX_SAFE_INTEGER : 0)
      const ofAny = newestFirst ? BACKWARD : FORWARD
      const ofRun = newestFirst ? OF_RUN_BACKWARD : OF_RUN_FORWARD
      const values = { source, since, after, limit }
      const rows = db.read((tx) =>
        run === undefined
          ? tx.all<AuditRow>(ofAny, values)
          : tx.all<AuditRow>(ofRun, { ...values, run, target }),
      )
      return rows.map((row) =>
        toAuditEntry({
          ...row,
          evidence: readJson(row.evidence as string),
          before: readJson(row.before as string),
          after: readJson(row.after as string),
        }),
      )
    },
  }
}
