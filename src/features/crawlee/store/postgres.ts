import type { InTransaction } from '../../../core/model/checkpoint.ts'
import { messageOf, UsageError } from '../../../core/model/errors.ts'
import { isId, newId } from '../../../core/model/id.ts'
import {
  ADD_ON_CONFLICT,
  codeOf,
  internalFunctions,
  isDataError,
  ms,
  sql,
  writerOf,
  type Database,
  type Sql,
} from '../../../core/store/postgres/kit.ts'
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
  type StorageRow,
} from './store.ts'

const COLUMNS = /* sql */ `
  s.id, s.kind, s.name, ${ms('s.created_at')} AS created_at, ${ms('s.modified_at')} AS modified_at,
  ${ms('s.accessed_at')} AS accessed_at
`
// $3 is null where $2 is no id. A match by id goes before a match by name.
const FIND = sql('storage:find')`
  WITH found AS MATERIALIZED (
    SELECT * FROM unstuck.crawlee_storage WHERE kind = $1 AND (id = $3::uuid OR name = $2)
     ORDER BY id IS NOT DISTINCT FROM $3::uuid DESC LIMIT 1
  ),
  accessed AS (
    UPDATE unstuck.crawlee_storage SET accessed_at = clock_timestamp()
     WHERE id IN (SELECT s.id FROM unstuck.crawlee_storage s JOIN found USING (id)
                   WHERE s.accessed_at < clock_timestamp() - ${ACCESS_GRANULARITY_MS} * interval '1 millisecond'
                     FOR NO KEY UPDATE OF s SKIP LOCKED)
    RETURNING id, accessed_at
  )
  SELECT ${COLUMNS} FROM (
    SELECT f.id, f.kind, f.name, f.created_at, f.modified_at, coalesce(a.accessed_at, f.accessed_at) AS accessed_at
      FROM found f LEFT JOIN accessed a USING (id)
  ) AS s
`
const MAKE = sql('storage:make')`
  INSERT INTO unstuck.crawlee_storage AS s (id, kind, name) VALUES ($1, $2, $3)
  ON CONFLICT (kind, name) DO UPDATE SET accessed_at = clock_timestamp()
  RETURNING ${COLUMNS}
`
const LIST_STORAGES = (direction: 'ASC' | 'DESC'): Sql =>
  sql(`storage:list-${direction}`)`
  SELECT all_of_them.total, page.*
    FROM (SELECT count(*)::int AS total FROM unstuck.crawlee_storage WHERE kind = $1) AS all_of_them
    LEFT JOIN (
      SELECT ${COLUMNS} FROM unstuck.crawlee_storage s WHERE s.kind = $1
       ORDER BY s.created_at ${direction}, s.id ${direction} LIMIT $2 OFFSET $3
    ) AS page ON true
   ORDER BY page.created_at ${direction}, page.id ${direction}
`
const STORAGES_OLDEST_FIRST = LIST_STORAGES('ASC')
const STORAGES_NEWEST_FIRST = LIST_STORAGES('DESC')

const RENAME = sql('storage:rename')`
  UPDATE unstuck.crawlee_storage SET name = $2, modified_at = clock_timestamp(), accessed_at = clock_timestamp()
   WHERE id = $1 RETURNING id
`
const DROP = sql('storage:drop')`DELETE FROM unstuck.crawlee_storage WHERE id = $1 RETURNING id`

// One that was claimed during a crash is claimed alone, by a process that holds no other: it comes after the rest.
export const CLAIM_ORDER = sql('queue:claim-order')`
  SELECT key FROM (
    (SELECT 1 AS part, ready_at, id, key FROM unstuck.target
      WHERE run_id = $1 AND status = 'planned' AND crashes = 0 AND ready_at < 'infinity'
      ORDER BY ready_at, id LIMIT $2)
    UNION ALL
    (SELECT 2 AS part, ready_at, id, key FROM unstuck.target
      WHERE run_id = $1 AND status = 'planned' AND crashes = 0 AND ready_at IS NULL
      ORDER BY ready_at, id LIMIT $2)
    UNION ALL
    (SELECT 3 AS part, ready_at, id, key FROM unstuck.target
      WHERE run_id = $1 AND status = 'planned' AND crashes > 0 ORDER BY ready_at, id LIMIT $2)
    UNION ALL
    (SELECT 4 AS part, ready_at, id, key FROM unstuck.target
      WHERE run_id = $1 AND status = 'in_progress' ORDER BY ready_at, id LIMIT $2)
  ) AS parts
   ORDER BY part, ready_at, id LIMIT $2
`

const NOT_UNIQUE = '23505'

export function crawleeMethods(db: Database): CrawleeStore {
  return {
    ...datasetMethods(db),
    ...recordMethods(db),

    storage: async (kind, idOrName) => {
      if (!isStorableLabel(idOrName)) return null
      const id = isId(idOrName) ? idOrName : null
      const [row] = await db.all<StorageRow>(FIND, [kind, idOrName, id])
      return row ? toStorage(row) : null
    },

    makeStorage: async (kind, name) => {
      checkLabel('The name', name)
      const [row] = await db.all<StorageRow>(MAKE, [newId(), kind, name])
      return toStorage(row!)
    },

    storages: async (kind, { offset, limit, desc }) => {
      const rows = await db.all<{ total: number } & (StorageRow | { id: null })>(
        desc ? STORAGES_NEWEST_FIRST : STORAGES_OLDEST_FIRST,
        [kind, limit, offset],
      )
      return {
        total: rows[0]!.total,
        items: rows.filter((row) => row.id !== null).map(toStorage),
      }
    },

    renameStorage: async (id, name) => {
      checkLabel('The name', name)
      try {
        return isId(id) && (await db.all(RENAME, [id, name])).length === 1
      } catch (error) {
        if (codeOf(error) !== NOT_UNIQUE) throw error
        throw new UsageError(`The name ${name} is taken.`, { cause: error })
      }
    },

    dropStorage: async (id) => isId(id) && (await db.all(DROP, [id])).length === 1,

    claimOrder: async (run, limit) =>
      (await db.all<{ key: string }>(CLAIM_ORDER, [run, limit])).map(({ key }) => key),
  }
}

// — Datasets —

/** Marks the storages as modified, at most once a second and by one transaction at a time, so that none waits for it. */
const MODIFY = (ids: string): string => /* sql */ `
  UPDATE unstuck.crawlee_storage SET modified_at = clock_timestamp(), accessed_at = clock_timestamp()
   WHERE id IN (SELECT id FROM unstuck.crawlee_storage
                 WHERE id = ANY (${ids}) AND modified_at < clock_timestamp() - ${ACCESS_GRANULARITY_MS} * interval '1 millisecond'
                   FOR NO KEY UPDATE SKIP LOCKED)
`
// xmax is set on a row that existed and was locked for its update.
// $1 run, $2 group, $3 to $5 the entries.
const SAVED = /* sql */ `
  saved AS (
    INSERT INTO unstuck.crawlee_dataset_entry (storage_id, key, data, source, run_id, group_name)
    SELECT storage_id, key, data::json, (SELECT source FROM unstuck.run WHERE id = $1), $1, $2
      FROM unnest($3::uuid[], $4::text[], $5::text[])
           WITH ORDINALITY AS e (storage_id, key, data, nth)
     ORDER BY nth
    ON CONFLICT (storage_id, key) WHERE key IS NOT NULL DO UPDATE SET
      data = excluded.data, source = excluded.source, run_id = excluded.run_id, group_name = excluded.group_name,
      version = crawlee_dataset_entry.version + 1, changed_at = excluded.changed_at
    RETURNING xmax = 0 AS is_new
  ),
  modified AS (${MODIFY('$3::uuid[]')})
`
const APPEND = sql('dataset:append')`WITH ${SAVED} SELECT count(*) FROM saved`
// $6 writer.
const APPEND_AND_COUNT = sql('dataset:append-and-count')`
  WITH ${SAVED}
  INSERT INTO unstuck.run_counters (run_id, group_name, writer, items_new, items_updated)
  SELECT $1, $2, $6, count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new) FROM saved
  ${ADD_ON_CONFLICT}
`
// The subquery reads only the index up to the offset: entries before it may be large.
const LIST_ENTRIES = (direction: 'ASC' | 'DESC'): Sql =>
  sql(`dataset:list-${direction}`)`
  SELECT all_of_them.total,
         (SELECT data::text FROM unstuck.crawlee_dataset_entry WHERE seq = page.seq) AS data
    FROM (SELECT count(*)::int AS total FROM unstuck.crawlee_dataset_entry WHERE storage_id = $1) AS all_of_them
    LEFT JOIN (
      SELECT seq FROM unstuck.crawlee_dataset_entry WHERE storage_id = $1
       ORDER BY seq ${direction} LIMIT $2 OFFSET $3
    ) AS page ON true
   ORDER BY page.seq ${direction}
`
export const ENTRIES_OLDEST_FIRST = LIST_ENTRIES('ASC')
export const ENTRIES_NEWEST_FIRST = LIST_ENTRIES('DESC')

/** Limits of one statement. */
const BATCH = 5_000
const BATCH_CHARACTERS = 16_000_000

function datasetMethods(db: Database): Pick<CrawleeStore, 'append' | 'appending' | 'entries'> {
  return {
    append: async (dataset, entries, from) => {
      const origin = [from?.run ?? null, from?.group ?? '']
      const [first, ...more] = batches(readEntries(entries.map((entry) => ({ ...entry, dataset }))))
      if (!first) return
      try {
        if (more.length === 0) return void (await db.all(APPEND, [...origin, ...columns(first)]))
        await db.transaction('dataset:append', async (connection) => {
          for (const batch of [first, ...more])
            await connection.all(APPEND, [...origin, ...columns(batch)])
        })
      } catch (error) {
        throw entryError(error, [dataset])
      }
    },

    appending: (run, entries, group = null) => {
      const kept = batches(readEntries(entries))
      const append: InTransaction = async (tx) => {
        try {
          for (const batch of kept) {
            const values = [run, group ?? '', ...columns(batch), writerOf(tx)]
            await tx.query(APPEND_AND_COUNT.text, values)
          }
        } catch (error) {
          throw entryError(
            error,
            entries.map(({ dataset }) => dataset),
          )
        }
      }
      internalFunctions.add(append)
      return append
    },

    entries: async (dataset, { offset, limit, desc }) => {
      const rows = await db.all<{ total: number; data: string | null }>(
        desc ? ENTRIES_NEWEST_FIRST : ENTRIES_OLDEST_FIRST,
        [dataset, limit, offset],
      )
      return { total: rows[0]!.total, items: rows.flatMap(({ data }) => data ?? []) }
    },
  }
}

function batches(entries: readonly Entry[]): Entry[][] {
  const all: Entry[][] = []
  let characters = Number.POSITIVE_INFINITY
  for (const entry of entries) {
    characters += entry.data.length
    if (characters > BATCH_CHARACTERS || all.at(-1)!.length === BATCH) {
      all.push([])
      characters = entry.data.length
    }
    all.at(-1)!.push(entry)
  }
  return all
}

function columns(entries: readonly Entry[]): unknown[] {
  return [
    entries.map(({ dataset }) => dataset),
    entries.map(({ key }) => key),
    entries.map(({ data }) => data),
  ]
}

const NO_SUCH_ROW = '23503'

/** Turns the server's error about an entry or a record into advice. */
function entryError(error: unknown, storages: readonly string[]): unknown {
  if (codeOf(error) === NO_SUCH_ROW) return storageNotFound([...new Set(storages)].join(' or '))
  if (!isDataError(error)) return error
  return new UsageError(`PostgreSQL cannot store it: ${messageOf(error)}.`, { cause: error })
}

// — Records —

const RECORD = sql('record')`
  SELECT value, content_type FROM unstuck.crawlee_record WHERE storage_id = $1 AND key = $2
`
const SET_RECORD = sql('record:set')`
  WITH modified AS (${MODIFY('ARRAY[$1]::uuid[]')})
  INSERT INTO unstuck.crawlee_record (storage_id, key, value, content_type) VALUES ($1, $2, $3, $4)
  ON CONFLICT (storage_id, key) DO UPDATE SET value = excluded.value, content_type = excluded.content_type
`
const DELETE_RECORD = sql('record:delete')`
  WITH deleted AS (
    DELETE FROM unstuck.crawlee_record WHERE storage_id = $1 AND key = $2 RETURNING storage_id
  )
  ${MODIFY('ARRAY(SELECT storage_id FROM deleted)')}
`
export const KEYS = sql('record:keys')`
  SELECT key, octet_length(value) AS size FROM unstuck.crawlee_record
   WHERE storage_id = $1 AND key >= $2 ORDER BY key LIMIT $3
`
export const KEYS_BELOW = sql('record:keys-below')`
  SELECT key, octet_length(value) AS size FROM unstuck.crawlee_record
   WHERE storage_id = $1 AND key >= $2 AND key < $4 ORDER BY key LIMIT $3
`

type KeyRow = { key: string; size: number }

function recordMethods(db: Database): Pick<CrawleeStore, 'record' | 'setRecord' | 'recordKeys'> {
  return {
    record: async (storage, key) => {
      if (!isStorableLabel(key)) return null
      const [row] = await db.all<{ value: Uint8Array; content_type: string }>(RECORD, [
        storage,
        key,
      ])
      return row ? { value: row.value, contentType: row.content_type } : null
    },

    setRecord: async (storage, key, content) => {
      if (content === null) {
        if (isStorableLabel(key)) await db.all(DELETE_RECORD, [storage, key])
        return
      }
      checkLabel('The key', key)
      checkLabel('The content type', content.contentType)
      try {
        await db.all(SET_RECORD, [storage, key, content.value, content.contentType])
      } catch (error) {
        throw entryError(error, [storage])
      }
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
