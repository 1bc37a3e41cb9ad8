import { UsageError } from '../../model/errors.ts'
import { newId } from '../../model/id.ts'
import {
  isStorableLabel,
  checkLabel,
  toStorage,
  ACCESS_GRANULARITY_MS,
  type StorageRow,
} from '../storage-rows.ts'
import type { CrawleeStore } from '../crawlee-store.ts'
import { sql, type Database, type Sql } from './database.ts'
import { datasetMethods } from './datasets.ts'
import { recordMethods } from './records.ts'

// One whose id it is goes before one that is named like it.
const FIND = sql(
  'storage:find',
  /* sql */ `
  SELECT * FROM crawlee_storage WHERE kind = :kind AND (id = :idOrName OR name = :idOrName)
   ORDER BY id = :idOrName DESC LIMIT 1
`,
)
const ACCESS = sql('storage:access', `UPDATE crawlee_storage SET accessed_at = :now WHERE id = :id`)
const MAKE = sql(
  'storage:make',
  /* sql */ `
  INSERT INTO crawlee_storage (id, kind, name, created_at, modified_at, accessed_at)
  VALUES (:id, :kind, :name, :now, :now, :now)
  ON CONFLICT (kind, name) DO UPDATE SET accessed_at = excluded.accessed_at
  RETURNING *
`,
)
const TOTAL = sql(
  'storage:total',
  `SELECT count(*) AS total FROM crawlee_storage WHERE kind = :kind`,
)
const LIST = (direction: 'ASC' | 'DESC'): Sql =>
  sql(
    `storage:list-${direction}`,
    /* sql */ `
  SELECT * FROM crawlee_storage WHERE kind = :kind
   ORDER BY created_at ${direction}, id ${direction} LIMIT :limit OFFSET :offset
`,
  )
const OLDEST_FIRST = LIST('ASC')
const NEWEST_FIRST = LIST('DESC')

const NAMESAKE = sql(
  'storage:same-name',
  /* sql */ `
  SELECT other.id FROM crawlee_storage JOIN crawlee_storage AS other USING (kind)
   WHERE crawlee_storage.id = :id AND other.name = :name AND other.id <> :id
`,
)
const RENAME = sql(
  'storage:rename',
  `UPDATE crawlee_storage SET name = :name, modified_at = :now, accessed_at = :now WHERE id = :id`,
)
const DROP = sql('storage:drop', `DELETE FROM crawlee_storage WHERE id = :id`)

/** Storages by name, and what is in them. */
export function storageMethods(db: Database): CrawleeStore {
  return {
    ...datasetMethods(db),
    ...recordMethods(db),

    storage: async (kind, idOrName) => {
      if (!isStorableLabel(idOrName)) return null
      const row = db.read((tx) => tx.get<StorageRow>(FIND, { kind, idOrName }))
      if (!row) return null
      // Who looks often must not fight for the write lock.
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
        total: tx.get<{ total: number }>(TOTAL, { kind })!.total,
        items: tx
          .all<StorageRow>(desc ? NEWEST_FIRST : OLDEST_FIRST, { kind, limit, offset })
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
  }
}
