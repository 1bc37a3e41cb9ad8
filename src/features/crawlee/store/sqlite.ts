import { UsageError } from '../../../core/model/errors.ts'
import { newId, type Id } from '../../../core/model/id.ts'
import {
  addCounts,
  sql,
  type Connection,
  type Database,
  type Sql,
} from '../../../core/store/sqlite/kit.ts'
import {
  ACCESS_GRANULARITY_MS,
  checkLabel,
  isStorableLabel,
  keyRange,
  readEntries,
  storageNotFound,
  toStorage,
  type CrawleeStore,
  type Entry,
  type EntryOrigin,
  type StorageRow,
} from './store.ts'

// A match by id goes before a match by name.
const FIND = sql('storage:find')`
  SELECT * FROM crawlee_storage WHERE kind = :kind AND (id = :idOrName OR name = :idOrName)
   ORDER BY id = :idOrName DESC LIMIT 1
`
const ACCESS = sql('storage:access')`UPDATE crawlee_storage SET accessed_at = :now WHERE id = :id`
const MAKE = sql('storage:make')`
  INSERT INTO crawlee_storage (id, kind, name, created_at, modified_at, accessed_at)
  VALUES (:id, :kind, :name, :now, :now, :now)
  ON CONFLICT (kind, name) DO UPDATE SET accessed_at = excluded.accessed_at
  RETURNING *
`
const STORAGES_TOTAL = sql('storage:total')`
  SELECT count(*) AS total FROM crawlee_storage WHERE kind = :kind
`
const LIST_STORAGES = (direction: 'ASC' | 'DESC'): Sql =>
  sql(`storage:list-${direction}`)`
  SELECT * FROM crawlee_storage WHERE kind = :kind
   ORDER BY created_at ${direction}, id ${direction} LIMIT :limit OFFSET :offset
`
const STORAGES_OLDEST_FIRST = LIST_STORAGES('ASC')
const STORAGES_NEWEST_FIRST = LIST_STORAGES('DESC')

const NAMESAKE = sql('storage:same-name')`
  SELECT other.id FROM crawlee_storage JOIN crawlee_storage AS other USING (kind)
   WHERE crawlee_storage.id = :id AND other.name = :name AND other.id <> :id
`
const RENAME = sql('storage:rename')`
  UPDATE crawlee_storage SET name = :name, modified_at = :now, accessed_at = :now WHERE id = :id
`
const DROP = sql('storage:drop')`DELETE FROM crawlee_storage WHERE id = :id`

// One that was claimed during a crash is claimed alone, by a process that holds no other: it comes after the rest.
export const CLAIM_ORDER = sql('queue:claim-order')`
  SELECT key FROM (
    SELECT * FROM (SELECT 1 AS part, ready_at, id, key FROM target
      WHERE run_id = :run AND status = 'planned' AND crashes = 0 AND ready_at IS NOT NULL
      ORDER BY ready_at, id LIMIT :limit)
    UNION ALL
    SELECT * FROM (SELECT 2 AS part, ready_at, id, key FROM target
      WHERE run_id = :run AND status = 'planned' AND crashes = 0 AND ready_at IS NULL
      ORDER BY id LIMIT :limit)
    UNION ALL
    SELECT * FROM (SELECT 3 AS part, ready_at, id, key FROM target
      WHERE run_id = :run AND status = 'planned' AND crashes > 0 ORDER BY ready_at, id LIMIT :limit)
    UNION ALL
    SELECT * FROM (SELECT 4 AS part, ready_at, id, key FROM target
      WHERE run_id = :run AND status = 'in_progress' ORDER BY ready_at NULLS LAST, id LIMIT :limit)
  ) ORDER BY part, ready_at NULLS LAST, id LIMIT :limit
`

export function crawleeMethods(db: Database): CrawleeStore {
  return {
    ...datasetMethods(db),
    ...recordMethods(db),

    storage: async (kind, idOrName) => {
      if (!isStorableLabel(idOrName)) return null
      const row = db.read((tx) => tx.get<StorageRow>(FIND, { kind, idOrName }))
      if (!row) return null
      const now = db.now()
      if (now - row.accessed_at < ACCESS_GRANULARITY_MS) return toStorage(row)
      await db.write('storage:access', (tx) => tx.run(ACCESS, { id: row.id, now }))
      return toStorage({ ...row, accessed_at: now })
    },

    makeStorage: async (kind, name) => {
      checkLabel('The name', name)
      const made = { id: newId(), kind, name, now: db.now() }
      return toStorage(await db.write('storage:make', (tx) => tx.get<StorageRow>(MAKE, made)!))
    },

    storages: async (kind, { offset, limit, desc }) =>
      db.snapshot((tx) => ({
        total: tx.get<{ total: number }>(STORAGES_TOTAL, { kind })!.total,
        items: tx
          .all<StorageRow>(desc ? STORAGES_NEWEST_FIRST : STORAGES_OLDEST_FIRST, {
            kind,
            limit,
            offset,
          })
          .map(toStorage),
      })),

    renameStorage: async (id, name) => {
      checkLabel('The name', name)
      return db.write('storage:rename', (tx) => {
        if (tx.get(NAMESAKE, { id, name })) throw new UsageError(`The name ${name} is taken.`)
        return tx.run(RENAME, { id, name, now: tx.now() }) === 1
      })
    },

    dropStorage: (id) => db.write('storage:drop', (tx) => tx.run(DROP, { id }) === 1),

    claimOrder: async (run, limit) =>
      db.read((tx) => tx.all<{ key: string }>(CLAIM_ORDER, { run, limit }).map(({ key }) => key)),
  }
}

// — Datasets —

// Most entries are new, so that is tried first and costs one statement.
const ADD = sql('dataset:add')`
  INSERT INTO crawlee_dataset_entry (storage_id, key, data, source, run_id, group_name, saved_at, changed_at)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
  ON CONFLICT (storage_id, key) WHERE key IS NOT NULL DO NOTHING
`
const REPLACE = sql('dataset:replace')`
  UPDATE crawlee_dataset_entry
     SET data = ?3, source = ?4, run_id = ?5, group_name = ?6, version = version + 1, changed_at = ?7
   WHERE storage_id = ?1 AND key = ?2
`
const SOURCE_OF = sql('dataset:source')`SELECT source FROM run WHERE id = :run`
const MODIFY = sql('storage:modify')`
  UPDATE crawlee_storage SET modified_at = :now, accessed_at = :now WHERE id = :id
`

const ENTRIES_TOTAL = sql('dataset:total')`
  SELECT count(*) AS total FROM crawlee_dataset_entry WHERE storage_id = :dataset
`
// The subquery reads only the index up to the offset: entries before it may be large.
const LIST_ENTRIES = (direction: 'ASC' | 'DESC'): Sql =>
  sql(`dataset:list-${direction}`)`
  SELECT data FROM crawlee_dataset_entry
   WHERE seq IN (SELECT seq FROM crawlee_dataset_entry WHERE storage_id = :dataset
                  ORDER BY seq ${direction} LIMIT :limit OFFSET :offset)
   ORDER BY seq ${direction}
`
export const ENTRIES_OLDEST_FIRST = LIST_ENTRIES('ASC')
export const ENTRIES_NEWEST_FIRST = LIST_ENTRIES('DESC')

function datasetMethods(db: Database): Pick<CrawleeStore, 'append' | 'appending' | 'entries'> {
  return {
    append: async (dataset, entries, from = null) => {
      const kept = readEntries(entries.map((entry) => ({ ...entry, dataset })))
      if (kept.length > 0) await db.write('dataset:append', (tx) => void save(tx, kept, from))
    },

    appending: (run, entries, group = null) => {
      const kept = readEntries(entries)
      return () => {
        if (kept.length === 0) return
        // The only writing connection: it is in the page's transaction while this runs.
        const counts = save(db.writer, kept, { run, group })
        addCounts(db.writer, run, group ?? '', counts, db.writer.now())
      }
    },

    entries: async (dataset, { offset, limit, desc }) =>
      db.snapshot((tx) => ({
        total: tx.get<{ total: number }>(ENTRIES_TOTAL, { dataset })!.total,
        items: tx
          .many<{ data: string }>(desc ? ENTRIES_NEWEST_FIRST : ENTRIES_OLDEST_FIRST, {
            dataset,
            limit,
            offset,
          })
          .map(({ data }) => data),
      })),
  }
}

/** Returns how many were new, and how many replaced one. */
function save(
  tx: Connection,
  entries: readonly Entry[],
  from: EntryOrigin | null,
): { items_new: number; items_updated: number } {
  const counts = { items_new: 0, items_updated: 0 }
  const now = tx.now()
  for (const id of new Set(entries.map(({ dataset }) => dataset))) {
    if (tx.run(MODIFY, { id, now }) === 0) throw storageNotFound(id)
  }
  const run = from?.run ?? null
  const source =
    run === null ? null : (tx.get<{ source: string }>(SOURCE_OF, { run })?.source ?? null)
  for (const { dataset, key, data } of entries) {
    const values = [dataset, key, data, source, run, from?.group ?? '', now]
    if (tx.run(ADD, values) === 1) counts.items_new++
    else counts.items_updated += tx.run(REPLACE, values)
  }
  return counts
}

// — Records —

const RECORD = sql('record')`
  SELECT value, content_type FROM crawlee_record WHERE storage_id = :storage AND key = :key
`
const SET_RECORD = sql('record:set')`
  INSERT INTO crawlee_record (storage_id, key, value, content_type) VALUES (:storage, :key, :value, :contentType)
  ON CONFLICT (storage_id, key) DO UPDATE SET value = excluded.value, content_type = excluded.content_type
`
const DELETE_RECORD = sql('record:delete')`
  DELETE FROM crawlee_record WHERE storage_id = :storage AND key = :key
`
export const KEYS = sql('record:keys')`
  SELECT key, length(value) AS size FROM crawlee_record
   WHERE storage_id = :storage AND key >= :from ORDER BY key LIMIT :limit
`
export const KEYS_BELOW = sql('record:keys-below')`
  SELECT key, length(value) AS size FROM crawlee_record
   WHERE storage_id = :storage AND key >= :from AND key < :below ORDER BY key LIMIT :limit
`

type KeyRow = { key: string; size: number }

function recordMethods(db: Database): Pick<CrawleeStore, 'record' | 'setRecord' | 'recordKeys'> {
  return {
    record: async (storage, key) => {
      if (!isStorableLabel(key)) return null
      const row = db.read((tx) =>
        tx.get<{ value: Uint8Array; content_type: string }>(RECORD, { storage, key }),
      )
      return row ? { value: row.value, contentType: row.content_type } : null
    },

    setRecord: async (storage, key, content) => {
      if (content === null) return deleteRecord(db, storage, key)
      checkLabel('The key', key)
      checkLabel('The content type', content.contentType)
      await db.write('record:set', (tx) => {
        if (tx.run(MODIFY, { id: storage, now: tx.now() }) === 0) throw storageNotFound(storage)
        tx.run(SET_RECORD, { storage, key, ...content })
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

async function deleteRecord(db: Database, storage: Id, key: string): Promise<void> {
  if (!isStorableLabel(key)) return
  await db.write('record:delete', (tx) => {
    if (tx.run(DELETE_RECORD, { storage, key }) === 1)
      tx.run(MODIFY, { id: storage, now: tx.now() })
  })
}
