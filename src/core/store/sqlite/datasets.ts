import { storageNotFound, readEntries, type Entry } from '../storage-rows.ts'
import type { CrawleeStore } from '../crawlee-store.ts'
import { sql, type Connection, type Database, type Sql } from './database.ts'
import { addCounts } from './counters.ts'

// Most entries are new, so that is tried first and costs one statement.
const ADD = sql(
  'dataset:add',
  /* sql */ `
  INSERT INTO crawlee_dataset_entry (storage_id, key, data) VALUES (?1, ?2, ?3)
  ON CONFLICT (storage_id, key) WHERE key IS NOT NULL DO NOTHING
`,
)
const REPLACE = sql(
  'dataset:replace',
  `UPDATE crawlee_dataset_entry SET data = ?3 WHERE storage_id = ?1 AND key = ?2`,
)
/** What is in it has changed. */
export const MODIFY = sql(
  'storage:modify',
  `UPDATE crawlee_storage SET modified_at = :now, accessed_at = :now WHERE id = :id`,
)

const TOTAL = sql(
  'dataset:total',
  `SELECT count(*) AS total FROM crawlee_dataset_entry WHERE storage_id = :dataset`,
)
// The way to the offset leads along the index alone: entries may be large, and those before it are not read.
const LIST = (direction: 'ASC' | 'DESC'): Sql =>
  sql(
    `dataset:list-${direction}`,
    /* sql */ `
  SELECT data FROM crawlee_dataset_entry
   WHERE seq IN (SELECT seq FROM crawlee_dataset_entry WHERE storage_id = :dataset
                  ORDER BY seq ${direction} LIMIT :limit OFFSET :offset)
   ORDER BY seq ${direction}
`,
  )
export const OLDEST_FIRST = LIST('ASC')
export const NEWEST_FIRST = LIST('DESC')

/** Entries in the order they came. */
export function datasetMethods(
  db: Database,
): Pick<CrawleeStore, 'append' | 'appending' | 'entries'> {
  return {
    append: async (dataset, entries) => {
      const kept = readEntries(entries.map((entry) => ({ ...entry, dataset })))
      if (kept.length > 0) await db.write('dataset:append', (tx) => void save(tx, kept))
    },

    appending: (run, entries, group = null) => {
      const kept = readEntries(entries)
      return () => {
        if (kept.length === 0) return
        // The one writer there is: it is in the page's transaction while this runs.
        addCounts(db.writer, run, group ?? '', save(db.writer, kept), db.writer.now())
      }
    },

    entries: async (dataset, { offset, limit, desc }) =>
      db.snapshot((tx) => ({
        total: tx.get<{ total: number }>(TOTAL, { dataset })!.total,
        items: tx
          .many<{ data: string }>(desc ? NEWEST_FIRST : OLDEST_FIRST, { dataset, limit, offset })
          .map(({ data }) => data),
      })),
  }
}

/** Answers how many were new, and how many replaced one. */
function save(
  tx: Connection,
  entries: readonly Entry[],
): { items_new: number; items_updated: number } {
  const counts = { items_new: 0, items_updated: 0 }
  const now = tx.now()
  for (const id of new Set(entries.map(({ dataset }) => dataset))) {
    if (tx.run(MODIFY, { id, now }) === 0) throw storageNotFound(id)
  }
  for (const { dataset, key, data } of entries) {
    if (tx.run(ADD, [dataset, key, data]) === 1) counts.items_new++
    else counts.items_updated += tx.run(REPLACE, [dataset, key, data])
  }
  return counts
}
