import { isStorableLabel, checkLabel, keyRange, storageNotFound } from '../storage-rows.ts'
import type { CrawleeStore } from '../crawlee-store.ts'
import { sql, type Database } from './database.ts'
import { MODIFY } from './datasets.ts'

const RECORD = sql(
  'record',
  `SELECT value, content_type FROM crawlee_record WHERE storage_id = :storage AND key = :key`,
)
const HAS = sql(
  'record:has',
  `SELECT 1 FROM crawlee_record WHERE storage_id = :storage AND key = :key`,
)
const SET = sql(
  'record:set',
  /* sql */ `
  INSERT INTO crawlee_record (storage_id, key, value, content_type) VALUES (:storage, :key, :value, :contentType)
  ON CONFLICT (storage_id, key) DO UPDATE SET value = excluded.value, content_type = excluded.content_type
`,
)
const DELETE = sql(
  'record:delete',
  `DELETE FROM crawlee_record WHERE storage_id = :storage AND key = :key`,
)
export const KEYS = sql(
  'record:keys',
  /* sql */ `
  SELECT key, length(value) AS size FROM crawlee_record
   WHERE storage_id = :storage AND key >= :from ORDER BY key LIMIT :limit
`,
)
export const KEYS_BELOW = sql(
  'record:keys-below',
  /* sql */ `
  SELECT key, length(value) AS size FROM crawlee_record
   WHERE storage_id = :storage AND key >= :from AND key < :below ORDER BY key LIMIT :limit
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
      const row = db.read((tx) =>
        tx.get<{ value: Uint8Array; content_type: string }>(RECORD, { storage, key }),
      )
      return row ? { key, value: row.value, contentType: row.content_type } : null
    },

    hasRecord: async (storage, key) =>
      isStorableLabel(key) && db.read((tx) => tx.get(HAS, { storage, key })) !== undefined,

    setRecord: async (storage, { key, value, contentType }) => {
      checkLabel('The key', key)
      checkLabel('The content type', contentType)
      await db.write('record:set', (tx) => {
        if (tx.run(MODIFY, { id: storage, now: tx.now() }) === 0) throw storageNotFound(storage)
        tx.run(SET, { storage, key, value, contentType })
      })
    },

    deleteRecord: async (storage, key) => {
      if (!isStorableLabel(key)) return
      await db.write('record:delete', (tx) => {
        if (tx.run(DELETE, { storage, key }) === 1) {
          tx.run(MODIFY, { id: storage, now: tx.now() })
        }
      })
    },

    recordKeys: async (storage, { limit, ...page }) => {
      const range = keyRange(page)
      if (!range) return []
      const { from, below } = range
      const asked = { storage, from, limit }
      return db.read((tx) =>
        below === null
          ? tx.many<KeyRow>(KEYS, asked)
          : tx.many<KeyRow>(KEYS_BELOW, { ...asked, below }),
      )
    },
  }
}
