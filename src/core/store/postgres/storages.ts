import { UsageError } from '../../model/errors.ts'
import { isId, newId } from '../../model/id.ts'
import {
  isStorableLabel,
  checkLabel,
  toStorage,
  ACCESS_GRANULARITY_MS,
  type StorageRow,
} from '../storage-rows.ts'
import type { CrawleeStore } from '../crawlee-store.ts'
import { ms, sql, type Database, type Sql } from './database.ts'
import { datasetMethods } from './datasets.ts'
import { codeOf } from './errors.ts'
import { recordMethods } from './records.ts'

const COLUMNS = /* sql */ `
  s.id, s.kind, s.name, ${ms('s.created_at')} AS created_at, ${ms('s.modified_at')} AS modified_at,
  ${ms('s.accessed_at')} AS accessed_at
`
// $3 is null where $2 is no id. One whose id it is goes before one that is named like it.
const FIND = sql(
  'storage:find',
  /* sql */ `
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
`,
)
const MAKE = sql(
  'storage:make',
  /* sql */ `
  INSERT INTO unstuck.crawlee_storage AS s (id, kind, name) VALUES ($1, $2, $3)
  ON CONFLICT (kind, name) DO UPDATE SET accessed_at = clock_timestamp()
  RETURNING ${COLUMNS}
`,
)
const LIST = (direction: 'ASC' | 'DESC'): Sql =>
  sql(
    `storage:list-${direction}`,
    /* sql */ `
  SELECT all_of_them.total, page.*
    FROM (SELECT count(*)::int AS total FROM unstuck.crawlee_storage WHERE kind = $1) AS all_of_them
    LEFT JOIN (
      SELECT ${COLUMNS} FROM unstuck.crawlee_storage s WHERE s.kind = $1
       ORDER BY s.created_at ${direction}, s.id ${direction} LIMIT $2 OFFSET $3
    ) AS page ON true
   ORDER BY page.created_at ${direction}, page.id ${direction}
`,
  )
const OLDEST_FIRST = LIST('ASC')
const NEWEST_FIRST = LIST('DESC')

const RENAME = sql(
  'storage:rename',
  /* sql */ `
  UPDATE unstuck.crawlee_storage SET name = $2, modified_at = clock_timestamp(), accessed_at = clock_timestamp()
   WHERE id = $1 RETURNING id
`,
)
const DROP = sql('storage:drop', `DELETE FROM unstuck.crawlee_storage WHERE id = $1 RETURNING id`)

const NOT_UNIQUE = '23505'

/** Storages by name, and what is in them. */
export function storageMethods(db: Database): CrawleeStore {
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
        desc ? NEWEST_FIRST : OLDEST_FIRST,
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
  }
}
