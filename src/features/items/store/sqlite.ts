import { readJson, sql, type Database, type Params } from '../../../core/store/sqlite/kit.ts'
import {
  changePosition,
  entryKey,
  entryPosition,
  LATEST_SCANNED,
  toItem,
  toPart,
  type ItemRow,
  type ItemStore,
} from './store.ts'

/** All but its data. */
const ITEM = /* sql */ `
  key, coalesce(url, CASE WHEN key_version > 0 THEN key END) AS url, version, run_id, group_name, first_seen_at, last_seen_at, changed_at
`
// The data of what does not match stays unread: it may be long.
const MATCHES = /* sql */ `(:run IS NULL OR run_id = :run) AND (:group IS NULL OR group_name = :group)`
const BY_KEY = sql('items:by-key')`
  SELECT ${ITEM}, CASE WHEN ${MATCHES} THEN data END AS data, ${MATCHES} AS matches, key AS position
    FROM item WHERE source = :source AND key > :after ORDER BY key LIMIT :limit
`
// The key orders what changed at once, as the items of a page did.
const BY_CHANGE = sql('items:by-change')`
  SELECT ${ITEM}, CASE WHEN ${MATCHES} THEN data END AS data, ${MATCHES} AS matches,
         changed_at || ' ' || key AS position
    FROM item WHERE source = :source AND changed_at >= :at AND (changed_at > :at OR key > :key)
   ORDER BY changed_at, key LIMIT :limit
`
const LATEST = sql('items:latest')`
  SELECT ${ITEM}, data, 1 AS matches, key AS position FROM item
   WHERE rowid IN (
     SELECT id FROM (SELECT rowid AS id, run_id FROM item WHERE source = :source AND changed_at <= :until
                      ORDER BY changed_at DESC LIMIT ${LATEST_SCANNED})
      WHERE :run IS NULL OR run_id = :run LIMIT :limit)
   ORDER BY changed_at DESC, key DESC
`

const ITEMS_BY_RUN = sql('items:by-run')`
  SELECT run_id AS run, count(*) AS items FROM item WHERE source = :source GROUP BY run_id
`

const ENTRY = /* sql */ `
  e.seq, e.key, NULL AS url, e.version, e.run_id, e.group_name, e.saved_at AS first_seen_at,
  e.changed_at AS last_seen_at, e.changed_at, CAST(e.seq AS TEXT) AS position,
  (SELECT name FROM crawlee_storage WHERE id = e.storage_id) AS dataset
`
const ENTRY_MATCHES = /* sql */ `${MATCHES} AND (:since IS NULL OR changed_at >= :since)`
const ENTRIES = sql('items:entries')`
  SELECT ${ENTRY}, CASE WHEN ${ENTRY_MATCHES} THEN data END AS data, ${ENTRY_MATCHES} AS matches
    FROM crawlee_dataset_entry e WHERE source = :source AND seq > :after ORDER BY seq LIMIT :limit
`
const LATEST_ENTRIES = sql('items:latest-entries')`
  SELECT ${ENTRY}, data, 1 AS matches FROM crawlee_dataset_entry e
   WHERE seq IN (
     SELECT seq FROM (SELECT seq, run_id FROM crawlee_dataset_entry WHERE source = :source ORDER BY seq DESC LIMIT ${LATEST_SCANNED})
      WHERE :run IS NULL OR run_id = :run LIMIT :limit)
   ORDER BY seq DESC
`

export const ITEM_STATEMENTS = { BY_KEY, BY_CHANGE, LATEST, ENTRIES, LATEST_ENTRIES }

type Row = ItemRow & { seq?: number }

export function itemMethods(db: Database): ItemStore {
  const read = (statement: typeof BY_KEY, params: Params): ItemRow[] =>
    db.read((tx) =>
      tx.many<Row>(statement, params).map((row) => ({
        ...row,
        data: readJson(row.data as string | null),
        key: row.seq === undefined ? row.key : entryKey({ key: row.key, seq: row.seq }),
      })),
    )
  return {
    readItems: async (place, { source, run = null, group = null, since, after, limit }) => {
      const asked = { source, run, group, limit }
      if (place === 'datasets') {
        const from = after === undefined ? 0 : entryPosition(after)
        return toPart(read(ENTRIES, { ...asked, since: since ?? null, after: from }), limit)
      }
      if (since === undefined) return toPart(read(BY_KEY, { ...asked, after: after ?? '' }), limit)
      const from = after === undefined ? { at: since, key: '' } : changePosition(after)
      return toPart(read(BY_CHANGE, { ...asked, ...from }), limit)
    },
    latestItems: async (place, { source, run = null, until = Number.MAX_SAFE_INTEGER, limit }) => {
      const asked = { source, run, limit }
      const rows =
        place === 'datasets' ? read(LATEST_ENTRIES, asked) : read(LATEST, { ...asked, until })
      return rows.map(toItem)
    },
    itemsByRun: async (source) => db.read((tx) => tx.all(ITEMS_BY_RUN, { source })),
  }
}
