import type { AdoptedMemory } from '../adopted-memory.ts'
import {
  concluded,
  toIntent,
  toRemembered,
  type IntentRecord,
  type RememberedRecord,
} from '../adopted-rows.ts'
import { record } from './audit.ts'
import { ms, sql, type Database } from './database.ts'
import { storable, storableJson } from './storable.ts'

const REMEMBERED = sql(
  'adopted:rows',
  /* sql */ `
  SELECT id, name, key, ${ms('reopened_at')} AS reopened_at FROM unstuck.adopted_row
   WHERE id = ANY ($1::uuid[]) ORDER BY id
`,
)
const ENDING = sql(
  'adopted:ending',
  /* sql */ `
  SELECT id FROM unstuck.adopted_row
   WHERE right(id::text, 8) = right($1, 8) AND right(id::text, length($1)) = $1
   ORDER BY id LIMIT 10
`,
)
const INTEND = sql(
  'adopted:intend',
  /* sql */ `
  INSERT INTO unstuck.adopted_intent (id, row_id, name, key, entry, reopens)
  VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (id) DO NOTHING
`,
)
const COLUMNS = `id, ${ms('at')} AS at, row_id, name, key, entry, reopens`
// Of all that settle it, one finds it.
const SETTLE = sql(
  'adopted:settle',
  `DELETE FROM unstuck.adopted_intent WHERE id = $1 RETURNING ${COLUMNS}`,
)
const REMEMBER = sql(
  'adopted:remember',
  /* sql */ `
  INSERT INTO unstuck.adopted_row (id, name, key, reopened_at)
  VALUES ($1, $2, $3, CASE WHEN $4::boolean THEN clock_timestamp() END)
  ON CONFLICT (id) DO UPDATE SET reopened_at = excluded.reopened_at
`,
)
// Ordered by the column, not by what is answered of it: so the index is walked.
const OPEN = sql(
  'adopted:open',
  /* sql */ `
  SELECT ${COLUMNS} FROM unstuck.adopted_intent
   WHERE adopted_intent.at <= clock_timestamp() - $1 * interval '1 millisecond'
   ORDER BY adopted_intent.at, id LIMIT $2
`,
)
const FORGET = sql(
  'adopted:forget',
  /* sql */ `
  UPDATE unstuck.adopted_row SET reopened_at = NULL
   WHERE id = ANY ($1::uuid[]) AND reopened_at IS NOT NULL
`,
)

export function adoptedMemoryVerbs(db: Database): AdoptedMemory {
  return {
    adoptedRows: async (ids) =>
      (await db.all<RememberedRecord>(REMEMBERED, [ids])).map(toRemembered),

    adoptedEnding: async (suffix) =>
      (await db.all<{ id: string }>(ENDING, [storable(suffix.toLowerCase())])).map(({ id }) => id),

    intend: async ({ id, row, ref, entry, reopens }) => {
      const where = [storable(ref.table), storable(ref.key)]
      await db.all(INTEND, [id, row, ...where, storableJson(entry), reopens])
    },

    concludeIntent: (id, isDone) =>
      db.transaction('adopted:conclude', async (connection) => {
        const [settled] = await connection.all<IntentRecord>(SETTLE, [id])
        if (!settled || !isDone) return settled !== undefined
        const { row, ref, entry, reopens } = toIntent(settled)
        await record(connection, concluded(entry, isDone))
        await connection.all(REMEMBER, [row, ref.table, ref.key, reopens])
        return true
      }),

    openIntents: async (olderThanMs, limit) =>
      (await db.all<IntentRecord>(OPEN, [olderThanMs, limit])).map(toIntent),

    forgetReopening: async (ids) => void (await db.all(FORGET, [ids])),
  }
}
