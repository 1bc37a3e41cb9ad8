import type { InTransaction } from '../../model/checkpoint.ts'
import { messageOf, UsageError } from '../../model/errors.ts'
import { storageNotFound, readEntries, ACCESS_GRANULARITY_MS, type Entry } from '../storage-rows.ts'
import type { CrawleeStore } from '../crawlee-store.ts'
import { sql, type Database, type Sql } from './database.ts'
import { codeOf, isDataError } from './errors.ts'
import { ADD_ON_CONFLICT } from './counters.ts'
import { internalFunctions, writerOf } from './user-transaction.ts'

/** What is in these storages has changed. Marked now and then, by one at a time: nobody waits for it until a page is in. */
export const MODIFY = (ids: string): string => /* sql */ `
  UPDATE unstuck.crawlee_storage SET modified_at = clock_timestamp(), accessed_at = clock_timestamp()
   WHERE id IN (SELECT id FROM unstuck.crawlee_storage
                 WHERE id = ANY (${ids}) AND modified_at < clock_timestamp() - ${ACCESS_GRANULARITY_MS} * interval '1 millisecond'
                   FOR NO KEY UPDATE SKIP LOCKED)
`
// A row that was there has been locked for its update, which is all that xmax tells.
const SAVED = (first: number): string => /* sql */ `
  saved AS (
    INSERT INTO unstuck.crawlee_dataset_entry (storage_id, key, data)
    SELECT storage_id, key, data::json
      FROM unnest($${first}::uuid[], $${first + 1}::text[], $${first + 2}::text[])
           WITH ORDINALITY AS e (storage_id, key, data, nth)
     ORDER BY nth
    ON CONFLICT (storage_id, key) WHERE key IS NOT NULL DO UPDATE SET data = excluded.data
    RETURNING xmax = 0 AS is_new
  ),
  modified AS (${MODIFY(`$${first}::uuid[]`)})
`
const APPEND = sql('dataset:append', `WITH ${SAVED(1)} SELECT count(*) FROM saved`)
// $1 writer, $2 run, $3 group.
const APPEND_AND_BOOK = sql(
  'dataset:append-and-count',
  /* sql */ `
  WITH ${SAVED(4)}
  INSERT INTO unstuck.run_counters (run_id, group_name, writer, items_new, items_updated)
  SELECT $2, $3, $1, count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new) FROM saved
  ${ADD_ON_CONFLICT}
`,
)
// The way to the offset leads along the index alone: entries may be large, and those before it are not read.
const LIST = (direction: 'ASC' | 'DESC'): Sql =>
  sql(
    `dataset:list-${direction}`,
    /* sql */ `
  SELECT all_of_them.total,
         (SELECT data::text FROM unstuck.crawlee_dataset_entry WHERE seq = page.seq) AS data
    FROM (SELECT count(*)::int AS total FROM unstuck.crawlee_dataset_entry WHERE storage_id = $1) AS all_of_them
    LEFT JOIN (
      SELECT seq FROM unstuck.crawlee_dataset_entry WHERE storage_id = $1
       ORDER BY seq ${direction} LIMIT $2 OFFSET $3
    ) AS page ON true
   ORDER BY page.seq ${direction}
`,
  )
export const OLDEST_FIRST = LIST('ASC')
export const NEWEST_FIRST = LIST('DESC')

/** More than this does not go into one statement. */
const BATCH = 5_000
const BATCH_CHARACTERS = 16_000_000

/** Entries in the order they came. */
export function datasetMethods(
  db: Database,
): Pick<CrawleeStore, 'append' | 'appending' | 'entries'> {
  return {
    append: async (dataset, entries) => {
      const [first, ...more] = batches(readEntries(entries.map((entry) => ({ ...entry, dataset }))))
      if (!first) return
      try {
        if (more.length === 0) return void (await db.all(APPEND, columns(first)))
        await db.transaction('dataset:append', async (connection) => {
          for (const batch of [first, ...more]) await connection.all(APPEND, columns(batch))
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
            const values = [writerOf(tx), run, group ?? '', ...columns(batch)]
            await tx.query(APPEND_AND_BOOK.text, values)
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
        desc ? NEWEST_FIRST : OLDEST_FIRST,
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

/** What the server says of an entry, or of a record, as advice. */
export function entryError(error: unknown, storages: readonly string[]): unknown {
  if (codeOf(error) === NO_SUCH_ROW) return storageNotFound([...new Set(storages)].join(' or '))
  if (!isDataError(error)) return error
  return new UsageError(`PostgreSQL cannot store it: ${messageOf(error)}.`, { cause: error })
}
