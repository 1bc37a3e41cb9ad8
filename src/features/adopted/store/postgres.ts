import type { Id } from '../../../core/model/id.ts'
import {
  ms,
  recordAuditEntries,
  sql,
  stripNulJson,
  type Connection,
  type Database,
} from '../../../core/store/postgres/kit.ts'
import {
  concluded,
  isRowGone,
  toIntent,
  toRemembered,
  type AdoptedStore,
  type Intent,
  type IntentRecord,
  type IntentResult,
  type RememberedRecord,
} from './store.ts'

const REMEMBERED = sql('adopted:rows')`
  SELECT id, name, key, ${ms('reopened_at')} AS reopened_at,
         ${ms('acknowledged_at')} AS acknowledged_at, acknowledged_hash FROM unstuck.adopted_row
   WHERE id = ANY ($1::uuid[]) ORDER BY id
`
const RECORD_INTENTS = sql('adopted:intend')`
  INSERT INTO unstuck.adopted_intent (id, row_id, name, key, entry, reopens)
  SELECT id, row_id, name, key, entry, reopens FROM json_to_recordset($1::json) AS i (
    id uuid, row_id uuid, name text, key text, entry jsonb, reopens boolean)
   ORDER BY id
  ON CONFLICT (id) DO NOTHING
`
const COLUMNS = `id, ${ms('at')} AS at, row_id, name, key, entry, reopens`
// If several processes conclude an intent, only the first one finds it.
const SETTLE = sql('adopted:settle')`
  DELETE FROM unstuck.adopted_intent WHERE id = ANY ($1::uuid[]) RETURNING ${COLUMNS}
`
const REMEMBER = sql('adopted:remember')`
  INSERT INTO unstuck.adopted_row (id, name, key, reopened_at)
  SELECT id, name, key, CASE WHEN reopens THEN clock_timestamp() END
    FROM json_to_recordset($1::json) AS r (id uuid, name text, key text, reopens boolean)
   ORDER BY id
  ON CONFLICT (id) DO UPDATE SET reopened_at = excluded.reopened_at
`
const FORGET_ROWS = sql('adopted:forget-rows')`
  DELETE FROM unstuck.adopted_row WHERE id = ANY ($1::uuid[])
`
const MARK = sql('adopted:mark')`
  INSERT INTO unstuck.adopted_row (id, name, key, acknowledged_at, acknowledged_hash)
  SELECT id, "table", key, CASE WHEN hash IS NOT NULL THEN clock_timestamp() END, hash
    FROM json_to_recordset($1::json) AS m (id uuid, "table" text, key text, hash text)
   ORDER BY id
  ON CONFLICT (id) DO UPDATE SET
    acknowledged_at = excluded.acknowledged_at, acknowledged_hash = excluded.acknowledged_hash
`
const MARKS = sql('adopted:marks')`
  SELECT 1 FROM unstuck.adopted_row WHERE name = $1 AND acknowledged_at IS NOT NULL LIMIT 1
`
// Ordered by the column, not by its value in milliseconds, so that the index is used.
const OPEN = sql('adopted:open')`
  SELECT ${COLUMNS} FROM unstuck.adopted_intent
   WHERE adopted_intent.at <= clock_timestamp() - $1 * interval '1 millisecond'
   ORDER BY adopted_intent.at, id LIMIT $2
`
const FORGET = sql('adopted:forget')`
  UPDATE unstuck.adopted_row SET reopened_at = NULL
   WHERE id = ANY ($1::uuid[]) AND reopened_at IS NOT NULL
`

export function adoptedMethods(db: Database): AdoptedStore {
  return {
    rememberedRows: async (ids) =>
      (await db.all<RememberedRecord>(REMEMBERED, [ids])).map(toRemembered),

    recordIntents: async (intents) => {
      const rows = intents.map(({ id, row, ref, entry, reopens }) => {
        return { id, row_id: row, name: ref.table, key: ref.key, entry, reopens }
      })
      await db.all(RECORD_INTENTS, [stripNulJson(rows)])
    },

    concludeIntents: (ends) =>
      db.transaction('adopted:conclude', async (connection) => {
        const rows = await connection.all<IntentRecord>(SETTLE, [ends.map(({ id }) => id)])
        const settled = new Map(rows.map((row) => [row.id, toIntent(row)]))
        await recordOutcomes(connection, ends, settled)
        return ends.map(({ id }) => settled.has(id))
      }),

    openIntents: async (olderThanMs, limit) =>
      (await db.all<IntentRecord>(OPEN, [olderThanMs, limit])).map(toIntent),

    forgetReopening: async (ids) => void (await db.all(FORGET, [ids])),

    markRows: (marks, entry) =>
      db.transaction('adopted:mark', async (connection) => {
        await connection.all(MARK, [stripNulJson(marks)])
        await recordAuditEntries(connection, [entry])
      }),

    hasMarks: async (table) => (await db.all(MARKS, [table])).length > 0,
  }
}

async function recordOutcomes(
  connection: Connection,
  ends: readonly IntentResult[],
  settled: ReadonlyMap<Id, Intent>,
): Promise<void> {
  const done = ends.flatMap(({ id, isDone }) => {
    const intent = settled.get(id)
    if (!intent || !isDone) return []
    const isGone = isRowGone(intent.entry, isDone)
    return [{ ...intent, entry: concluded(intent.entry, isDone), isGone }]
  })
  if (done.length === 0) return
  await recordAuditEntries(
    connection,
    done.map(({ entry }) => entry),
  )
  const kept = done.filter(({ isGone }) => !isGone)
  const gone = done.filter(({ isGone }) => isGone)
  if (gone.length > 0) await connection.all(FORGET_ROWS, [gone.map(({ row }) => row)])
  // For a row that occurs twice, the last operation counts.
  const rows = new Map(
    kept.map(({ row: id, ref: { table: name, key }, reopens }) => [id, { id, name, key, reopens }]),
  )
  if (rows.size > 0) await connection.all(REMEMBER, [stripNulJson([...rows.values()])])
}
