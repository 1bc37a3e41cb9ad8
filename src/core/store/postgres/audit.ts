import { toAuditEntry, type AuditRow } from '../rows.ts'
import type { AuditCount, AuditEntry, Store } from '../store.ts'
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
         before, after
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

const COUNTS = sql('audit:counts', 'anew')`
  SELECT source, action, count(*)::int AS count, ${ms('max(at)')} AS "lastAt" FROM unstuck.audit
   WHERE at >= ${timestamp('$1')} AND ($2::text IS NULL OR source = $2)
   GROUP BY source, action ORDER BY source COLLATE "C", action COLLATE "C"
`

export type NewEntry = Omit<AuditEntry, 'id' | 'at'>

/** Enters what was done into the trail, in the transaction that does it. */
export function recordAudit(connection: Connection, entry: NewEntry): Promise<void> {
  return recordAuditEntries(connection, [entry])
}

export async function recordAuditEntries(
  connection: Connection,
  entries: readonly NewEntry[],
): Promise<void> {
  if (entries.length > 0) await connection.all(RECORD, [stripNulJson(entries)])
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
      const from = after ?? (newestFirst ? Number.MAX_SAFE_INTEGER : 0)
      const values = [from, limit, since, source]
      const rows =
        run === undefined
          ? await db.all<AuditRow>(newestFirst ? BACKWARD : FORWARD, values)
          : await db.all<AuditRow>(newestFirst ? OF_RUN_BACKWARD : OF_RUN_FORWARD, [
              ...values,
              run,
              target,
            ])
      return rows.map(toAuditEntry)
    },

    auditCounts: ({ since = 0, source = null }) => db.all<AuditCount>(COUNTS, [since, source]),
  }
}
