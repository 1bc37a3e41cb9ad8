import { toAuditEntry, type AuditRow } from '../rows.ts'
import type { AuditCount, AuditEntry, Store } from '../store.ts'
import { sql, type Connection, type Database } from './database.ts'
import { readJson } from './lists.ts'

const RECORD = sql('audit:record')`
  INSERT INTO audit (at, actor, action, source, run_id, target_id, because, evidence, before, after)
  VALUES (:at, :actor, :action, :source, :run, :target, :because, :evidence, :before, :after)
`
const LIST = (name: string, where: string, order: string) =>
  sql(`audit:${name}`)`
  SELECT * FROM audit
   WHERE ${where} AND at >= :since AND (:source IS NULL OR source = :source)
   ORDER BY ${order} LIMIT :limit
`
const FORWARD = LIST('forward', 'id > :after', 'id')
const BACKWARD = LIST('backward', 'id < :after', 'id DESC')
const OF_RUN = 'run_id = :run AND (:target IS NULL OR target_id = :target)'
const OF_RUN_FORWARD = LIST('run-forward', `${OF_RUN} AND id > :after`, 'id')
const OF_RUN_BACKWARD = LIST('run-backward', `${OF_RUN} AND id < :after`, 'id DESC')
const COUNTS = sql('audit:counts')`
  SELECT source, action, count(*) AS count, max(at) AS lastAt FROM audit
   WHERE at >= :since AND (:source IS NULL OR source = :source)
   GROUP BY source, action ORDER BY source, action
`

/** Enters what was done into the trail, in the transaction that does it. */
export function recordAudit(tx: Connection, entry: Omit<AuditEntry, 'id'>): void {
  tx.run(RECORD, {
    ...entry,
    evidence: JSON.stringify(entry.evidence ?? null),
    before: JSON.stringify(entry.before),
    after: JSON.stringify(entry.after),
  })
}

export function auditMethods(db: Database): Pick<Store, 'audit' | 'auditCounts'> {
  return {
    audit: async ({
      run,
      target = null,
      source = null,
      since = 0,
      newestFirst = false,
      after,
      limit,
    }) => {
      const page = { after: after ?? (newestFirst ? Number.MAX_SAFE_INTEGER : 0), limit }
      const filter = { source, since, ...page }
      const rows = db.read((tx) =>
        run === undefined
          ? tx.all<AuditRow>(newestFirst ? BACKWARD : FORWARD, filter)
          : tx.all<AuditRow>(newestFirst ? OF_RUN_BACKWARD : OF_RUN_FORWARD, {
              ...filter,
              run,
              target,
            }),
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

    auditCounts: async ({ since = 0, source = null }) =>
      db.read((tx) => tx.all<AuditCount>(COUNTS, { since, source }).map((row) => ({ ...row }))),
  }
}
