import { isStorableLabel, checkLabel, keyRange } from '../storage-rows.ts'
import type { CrawleeStore } from '../crawlee-store.ts'
import { sql, type Database } from './database.ts'
import { entryError, MODIFY } from './datasets.ts'

const RECORD = sql(
  'record',
  `SELECT value, content_type FROM unstuck.crawlee_record WHERE storage_id = $1 AND key = $2`,
)
const HAS = sql(
  'record:has',
  `SELECT 1 FROM unstuck.crawlee_record WHERE storage_id = $1 AND key = $2`,
)
const SET = sql(
  'record:set',
  /* sql */ `
  WITH modified AS (${MODIFY('ARRAY[$1]::uuid[]')})
  INSERT INTO unstuck.crawlee_record (storage_id, key, value, content_type) VALUES ($1, $2, $3, $4)
  ON CONFLICT (storage_id, key) DO UPDATE SET value = excluded.value, content_type = excluded.content_type
`,
)
const DELETE = sql(
  'record:delete',
  /* sql */ `
  WITH deleted AS (
    DELETE FROM unstuck.crawlee_record WHERE storage_id = $1 AND key = $2 RETURNING storage_id
  )
  ${MODIFY('ARRAY(SELECT storage_id FROM deleted)')}
`,
)
export const KEYS = sql(
  'record:keys',
  /* sql */ `
  SELECT key, octet_length(value) AS size FROM unstuck.crawlee_record
   WHERE storage_id = $1 AND key >= $2 ORDER BY key LIMIT $3
`,
)
export const KEYS_BELOW = sql(
  'record:keys-below',
  /* sql */ `
  SELECT key, octet_length(value) AS size FROM unstuck.crawlee_record
   WHERE storage_id = $1 AND key >= $2 AND key < $4 ORDER BY key LIMIT $3
`,
)

type KeyRow = { key: string; size: number }

/** Bytes by key. */
export function recordMethods(
  db: Database,
): Pick<CrawleeStore, 'record' | 'hasRecord' | 'setRecord' | 'deleteRecord' | 'recordKeys'> {
  return {
    record: async (storage, key) => {
      if (!isStorableLabel(key)) return null
      const [row] = await db.all<{ value: Uint8Array; content_type: string }>(RECORD, [
        storage,
        key,
      ])
      return row ? { key, value: row.value, contentType: row.content_type } : null
    },

    hasRecord: async (storage, key) =>
      isStorableLabel(key) && (await db.all(HAS, [storage, key])).length > 0,

    setRecord: async (storage, { key, value, contentType }) => {
      checkLabel('The key', key)
      checkLabel('The content type', contentType)
      try {
        await db.all(SET, [storage, key, value, contentType])
      } catch (error) {
        throw entryError(error, [storage])
      }
    },

    deleteRecord: async (storage, key) => {
      if (isStorableLabel(key)) await db.all(DELETE, [storage, key])
    },

    recordKeys: async (storage, { limit, ...page }) => {
      const range = keyRange(page)
      if (!range) return []
      const { from, below } = range
      const asked = [storage, from, limit]
      return below === null
        ? db.all<KeyRow>(KEYS, asked)
        : db.all<KeyRow>(KEYS_BELOW, [...asked, below])
    },
  }
}
