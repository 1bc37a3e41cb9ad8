import { ms, sql, stripNul, type Database } from '../../../core/store/postgres/kit.ts'
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
  key, coalesce(url, CASE WHEN key_version > 0 THEN key END) AS url, version, run_id, group_name,
  ${ms('first_seen_at')} AS first_seen_at, ${ms('last_seen_at')} AS last_seen_at, ${ms('changed_at')} AS changed_at
`
// The data of what does not match stays unread: it may be long. $2 run, $3 group, $4 limit.
const MATCHES = /* sql */ `($2::uuid IS NULL OR run_id = $2) AND ($3::text IS NULL OR group_name = $3)`
const BY_KEY = sql('items:by-key')`
  SELECT ${ITEM}, CASE WHEN ${MATCHES} THEN data END AS data, (${MATCHES})::int AS matches, key AS position
    FROM unstuck.item WHERE source = $1 AND key > $5 ORDER BY key LIMIT $4
`
const MICROSECONDS = /* sql */ `(extract(epoch FROM changed_at) * 1000000)::bigint`
const FROM = /* sql */ `'epoch'::timestamptz + $5::bigint * interval '1 microsecond'`
// The key orders what changed at once.
const BY_CHANGE = sql('items:by-change')`
  SELECT ${ITEM}, CASE WHEN ${MATCHES} THEN data END AS data, (${MATCHES})::int AS matches,
         ${MICROSECONDS} || ' ' || key AS position
    FROM unstuck.item WHERE source = $1 AND item.changed_at >= ${FROM} AND (item.changed_at > ${FROM} OR key > $6)
   ORDER BY item.changed_at, key LIMIT $4
`
// $1 source, $2 run, $3 until, $4 limit.
const LATEST = sql('items:latest')`
  SELECT ${ITEM}, data, 1 AS matches, key AS position
    FROM unstuck.item
    JOIN (SELECT key FROM (SELECT i.key, i.run_id FROM unstuck.item i
                            WHERE i.source = $1 AND i.changed_at <= 'epoch'::timestamptz + ($3::float8 + 1) * interval '1 millisecond'
                            ORDER BY i.changed_at DESC LIMIT ${LATEST_SCANNED}) AS scanned
           WHERE $2::uuid IS NULL OR run_id = $2 LIMIT $4) AS latest USING (key)
   WHERE source = $1
   ORDER BY item.changed_at DESC, key DESC
`

const ITEMS_BY_RUN = sql('items:by-run')`
  SELECT run_id AS run, count(*)::int AS items FROM unstuck.item WHERE source = $1 GROUP BY run_id
`

const ENTRY = /* sql */ `
  e.seq::float8 AS seq, e.key, NULL AS url, e.version, e.run_id, e.group_name, ${ms('e.saved_at')} AS first_seen_at,
  ${ms('e.changed_at')} AS last_seen_at, ${ms('e.changed_at')} AS changed_at, e.seq::text AS position,
  (SELECT name FROM unstuck.crawlee_storage WHERE id = e.storage_id) AS dataset
`
// $5 after, $6 since.
const ENTRY_MATCHES = /* sql */ `
  ${MATCHES} AND ($6::float8 IS NULL OR e.changed_at >= 'epoch'::timestamptz + $6 * interval '1 millisecond')
`
// Ordered by both columns, because for one alone the planner walks the primary key, past the entries of other sources.
const ENTRIES = sql('items:entries')`
  SELECT ${ENTRY}, CASE WHEN ${ENTRY_MATCHES} THEN data END AS data, (${ENTRY_MATCHES})::int AS matches
    FROM unstuck.crawlee_dataset_entry e
   WHERE (e.source, e.seq) > ($1, $5) AND e.source <= $1 ORDER BY e.source, e.seq LIMIT $4
`
// $1 source, $2 run, $3 limit.
const LATEST_ENTRIES = sql('items:latest-entries')`
  SELECT ${ENTRY}, data, 1 AS matches FROM unstuck.crawlee_dataset_entry e
   WHERE e.seq IN (
     SELECT seq FROM (SELECT seq, run_id FROM unstuck.crawlee_dataset_entry
                       WHERE source BETWEEN $1 AND $1 ORDER BY source DESC, seq DESC LIMIT ${LATEST_SCANNED}) AS scanned
      WHERE $2::uuid IS NULL OR run_id = $2 LIMIT $3)
   ORDER BY e.seq DESC
`

export const ITEM_STATEMENTS = { BY_KEY, BY_CHANGE, LATEST, ENTRIES, LATEST_ENTRIES }

type Row = ItemRow & { seq?: number }

export function itemMethods(db: Database): ItemStore {
  const read = async (statement: typeof BY_KEY, values: unknown[]): Promise<ItemRow[]> =>
    (await db.all<Row>(statement, values)).map((row) => ({
      ...row,
      key: row.seq === undefined ? row.key : entryKey({ key: row.key, seq: row.seq }),
    }))
  return {
    readItems: async (place, { source, run = null, group, since, after, limit }) => {
      const asked = [stripNul(source), run, group === undefined ? null : stripNul(group), limit]
      if (place === 'datasets') {
        const from = after === undefined ? 0 : entryPosition(after)
        return toPart(await read(ENTRIES, [...asked, from, since ?? null]), limit)
      }
      if (since === undefined)
        return toPart(await read(BY_KEY, [...asked, stripNul(after ?? '')]), limit)
      const from = after === undefined ? { at: since * 1_000, key: '' } : changePosition(after)
      return toPart(await read(BY_CHANGE, [...asked, from.at, stripNul(from.key)]), limit)
    },
    latestItems: async (place, { source, run = null, until = Date.UTC(9999, 0), limit }) => {
      const rows =
        place === 'datasets'
          ? await read(LATEST_ENTRIES, [source, run, limit])
          : await read(LATEST, [source, run, until, limit])
      return rows.map(toItem)
    },
    itemsByRun: (source) => db.all(ITEMS_BY_RUN, [source]),
  }
}
