import { toAuditEntry, type AuditRow } from '../rows.ts'
import type { NewAuditEntry, Store } from '../store.ts'
import { timestamp, ms, sql, type Connection, type Database } from './database.ts'
import { stripNulJson } from './strip-nul.ts'

// A JSON null comes out of a record as no value at all.
const RECORD = sql('audit:record')`
  INSERT INTO unstuck.audit (actor, action, source, run_id, target_id, because, evidence, before, after)
  SELECT e.actor, e.action, e.source, e.run, e.target, e.because, coalesce(e.evidence, 'null'), e.before, e.after
    FROM ROWS FROM (
      json_to_recordset($1::json) AS (
        actor text, action text, source text, run uuid, target uuid, because text, evidence jsonb,
        before jsonb, after jsonb)
    ) WITH ORDINALITY AS e (actor, action, source, run, target, because, evidence, before, after, nth)
   ORDER BY e.nth
`

// Ordered by the column, not by the returned value, so that the index is used.
const LIST = (name: string, where: string, order: string) =>
  sql(`audit:${name}`, 'anew')`
  SELECT id::float8 AS id, ${ms('at')} AS at, actor, action, source, run_id, target_id, because, evidence,
         before, after, (SELECT key FROM unstuck.target WHERE id = audit.target_id) AS key
    FROM unstuck.audit
   WHERE ${where} AND at >= ${timestamp('$3')}
     AND ($4::text IS NULL OR source = $4)
   ORDER BY ${order} LIMIT $2
`
export const FORWARD = LIST('forward', 'id > $1', 'audit.id')
export const BACKWARD = LIST('backward', 'id < $1', 'audit.id DESC')
const OF_RUN = 'run_id = $5 AND ($6::uuid IS NULL OR target_id = $6)'
const OF_RUN_FORWARD = LIST('run-forward', `${OF_RUN} AND id > $1`, 'audit.id')
const OF_RUN_BACKWARD = LIST('run-backward', `${OF_RUN} AND id < $1`, 'audit.id DESC')

/** Enters what was done into the trail, in the transaction that does it. */
export function recordAudit(connection: Connection, entry: NewAuditEntry): Promise<void> {
  return recordAuditEntries(connection, [entry])
}

export async function recordAuditEntries(
  connection: Connection,
  entries: readonly NewAuditEntry[],
): Promise<void> {
  if (entries.length > 0) await connection.all(RECORD, [stripNulJson(entries)])
}

export function auditMethods(db: Database): Pick<Store, 'audit'> {
  return {
    audit: async ({ run, target = null, newestFirst, ...filter }) => {
      const { source = null, since = 0, limit } = filter
      const after = filter.after ?? (newestFirst ? Number.MAX_SAFE_INTEGER : 0)
      const ofAny = newestFirst ? BACKWARD : FORWARD
      const ofRun = newestFirst ? OF_RUN_BACKWARD : OF_RUN_FORWARD
      const values = [after, limit, since, source]
      const rows =
        run === undefined
          ? await db.all<AuditRow>(ofAny, values)
          : await db.all<AuditRow>(ofRun, [...values, run, target])
      return rows.map(toAuditEntry)
    },
  }
}
