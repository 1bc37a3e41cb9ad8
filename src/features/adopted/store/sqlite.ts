import {
  readJson,
  recordAudit,
  sql,
  type Connection,
  type Database,
} from '../../../core/store/sqlite/kit.ts'
import {
  concluded,
  isRowGone,
  toIntent,
  toRemembered,
  type AdoptedStore,
  type IntentRecord,
  type IntentResult,
  type RememberedRecord,
} from './store.ts'

const REMEMBERED = sql('adopted:rows')`
  SELECT * FROM adopted_row WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id
`
const RECORD_INTENT = sql('adopted:intend')`
  INSERT INTO adopted_intent (id, at, row_id, name, key, entry, reopens)
  VALUES (:id, :now, :row, :table, :key, :entry, :reopens)
  ON CONFLICT (id) DO NOTHING
`
// If several processes conclude an intent, only the first one finds it.
const SETTLE = sql('adopted:settle')`DELETE FROM adopted_intent WHERE id = :id RETURNING *`
const REMEMBER = sql('adopted:remember')`
  INSERT INTO adopted_row (id, name, key, reopened_at) VALUES (:row, :table, :key, :reopenedAt)
  ON CONFLICT (id) DO UPDATE SET reopened_at = excluded.reopened_at
`
const FORGET_ROW = sql('adopted:forget-row')`DELETE FROM adopted_row WHERE id = :row`
const MARK = sql('adopted:mark')`
  INSERT INTO adopted_row (id, name, key, acknowledged_at, acknowledged_hash)
  VALUES (:id, :table, :key, iif(:hash IS NULL, NULL, :now), :hash)
  ON CONFLICT (id) DO UPDATE SET
    acknowledged_at = excluded.acknowledged_at, acknowledged_hash = excluded.acknowledged_hash
`
const MARKS = sql('adopted:marks')`
  SELECT 1 FROM adopted_row WHERE name = :table AND acknowledged_at IS NOT NULL LIMIT 1
`
const OPEN = sql('adopted:open')`
  SELECT * FROM adopted_intent WHERE at <= :until ORDER BY at, id LIMIT :limit
`
const FORGET = sql('adopted:forget')`
  UPDATE adopted_row SET reopened_at = NULL
   WHERE id IN (SELECT value FROM json_each(:ids)) AND reopened_at IS NOT NULL
`

export function adoptedMethods(db: Database): AdoptedStore {
  return {
    rememberedRows: async (ids) =>
      db
        .read((tx) => tx.all<RememberedRecord>(REMEMBERED, { ids: JSON.stringify(ids) }))
        .map(toRemembered),

    recordIntents: (intents) =>
      db.write('adopted:intend', (tx) => {
        for (const { id, row, ref, entry, reopens } of intents) {
          const values = { entry: JSON.stringify(entry), reopens: reopens ? 1 : 0 }
          tx.run(RECORD_INTENT, { id, row, ...ref, ...values, now: tx.now() })
        }
      }),

    concludeIntents: (ends) =>
      db.write('adopted:conclude', (tx) => ends.map((end) => conclude(tx, end))),

    openIntents: async (olderThanMs, limit) =>
      db
        .read((tx) => tx.all<IntentRecord>(OPEN, { until: tx.now() - olderThanMs, limit }))
        .map(readIntent),

    forgetReopening: (ids) =>
      db.write('adopted:forget', (tx) => void tx.run(FORGET, { ids: JSON.stringify(ids) })),

    markRows: (marks, entry) =>
      db.write('adopted:mark', (tx) => {
        const now = tx.now()
        for (const mark of marks) tx.run(MARK, { ...mark, now })
        recordAudit(tx, entry)
      }),

    hasMarks: async (table) => db.read((tx) => tx.get(MARKS, { table }) !== undefined),
  }
}

function conclude(tx: Connection, { id, isDone }: IntentResult): boolean {
  const settled = tx.get<IntentRecord>(SETTLE, { id })
  if (!settled || !isDone) return settled !== undefined
  const { row, ref, entry, reopens } = readIntent(settled)
  recordAudit(tx, concluded(entry, isDone))
  if (isRowGone(entry, isDone)) tx.run(FORGET_ROW, { row })
  else tx.run(REMEMBER, { row, ...ref, reopenedAt: reopens ? tx.now() : null })
  return true
}

function readIntent(row: IntentRecord): ReturnType<typeof toIntent> {
  return toIntent({ ...row, entry: readJson(row.entry as string) })
}
