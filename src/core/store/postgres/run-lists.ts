import { isIdEnding } from '../../model/id.ts'
import { containing, endingWith } from '../like.ts'
import { checkAfter, toListing, toRun, type RunRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { timestamp, sql, type Database } from './database.ts'
import { TARGETS_ENDING } from './lists.ts'
import { COUNTERS, LISTED_COLUMNS } from './runs.ts'

// $1 source, $2 after, $3 limit, $4 since, $5 the least id of that time, $6 a part of the source, $7 the end of the id.
const FITS = /* sql */ `
  ($1::text IS NULL OR source = $1) AND ($2::uuid IS NULL OR id < $2)
  AND ($4::float8 IS NULL OR created_at >= ${timestamp('$4')}) AND ($5::uuid IS NULL OR id >= $5)
  AND ($6::text IS NULL OR source ILIKE $6 OR id::text LIKE $7)
`
const RUNS = sql('runs', 'anew')`
  SELECT ${LISTED_COLUMNS} FROM unstuck.run r ${COUNTERS}
   WHERE r.id IN (SELECT id FROM unstuck.run WHERE ${FITS} ORDER BY id DESC LIMIT $3)
   ORDER BY r.id DESC
`
// One walk along the index per status, merged: a page of the list costs the same however long the list is.
export const RUNS_IN = sql('runs:in', 'anew')`
  SELECT ${LISTED_COLUMNS} FROM unstuck.run r ${COUNTERS}
   WHERE r.id IN (
     SELECT found.id
       FROM unnest($8::text[]) AS asked (status)
      CROSS JOIN LATERAL (
        SELECT id FROM unstuck.run WHERE status = asked.status AND ${FITS} ORDER BY id DESC LIMIT $3
      ) AS found
      ORDER BY found.id DESC LIMIT $3)
   ORDER BY r.id DESC
`
export const WITH_DEAD_LETTERS = sql('runs:dead-letters', 'anew')`
  SELECT ${LISTED_COLUMNS} FROM unstuck.run r ${COUNTERS}
   WHERE r.id IN (
     SELECT id FROM unstuck.run
      WHERE ($1::text IS NULL OR source = $1) AND ($2::uuid IS NULL OR id < $2)
        AND id IN (
          SELECT run_id FROM unstuck.target
           WHERE status IN ('failed', 'stuck', 'parked') AND (acknowledged_at IS NOT NULL) = $4::bool)
      ORDER BY id DESC LIMIT $3)
   ORDER BY r.id DESC
`
// Ids are made by other clocks than this time is from; nothing younger has a lesser id than this one.
const LEAST_SINCE = sql('runs:since', 'anew')`
  SELECT min(id::text COLLATE "C") AS id FROM unstuck.run WHERE created_at >= ${timestamp('$1')}
`
// From one source that ever failed to the next along the index, and to the newest run of each.
export const LAST_FAILED = sql('runs:last-failed')`
  WITH RECURSIVE failing (source) AS (
    (SELECT source FROM unstuck.run WHERE status = 'failed' ORDER BY source LIMIT 1)
     UNION ALL
    SELECT next.source
      FROM failing f
     CROSS JOIN LATERAL (
       SELECT source FROM unstuck.run WHERE status = 'failed' AND source > f.source ORDER BY source LIMIT 1
     ) AS next
  ), last AS (
    SELECT newest.id
      FROM failing f
     CROSS JOIN LATERAL (
       SELECT id, status FROM unstuck.run WHERE source = f.source ORDER BY id DESC LIMIT 1
     ) AS newest
     WHERE newest.status = 'failed'
     ORDER BY newest.id DESC LIMIT $1
  )
  SELECT ${LISTED_COLUMNS} FROM unstuck.run r ${COUNTERS}
   WHERE r.id IN (SELECT id FROM last)
   ORDER BY r.id DESC
`
const RUNS_ENDING = sql('runs:ending')`
  SELECT id FROM unstuck.run
   WHERE right(id::text, 8) = right($1, 8) AND right(id::text, length($1)) = $1
   ORDER BY id DESC LIMIT 10
`

export function runListMethods(db: Database): Pick<Store, 'runs' | 'idsEnding'> {
  return {
    runs: async ({ source = null, statuses, search, createdSince, after, limit, ...only }) => {
      checkAfter({ after })
      if (only.latestFailed) {
        return { items: (await db.all<RunRow>(LAST_FAILED, [limit])).map(toRun), next: null }
      }
      if (only.deadLetters) {
        const values = [source, after ?? null, limit + 1, only.deadLetters === 'acknowledged']
        return toListing(await db.all<RunRow>(WITH_DEAD_LETTERS, values), limit, toRun)
      }
      const least = createdSince === undefined ? undefined : await leastSince(db, createdSince)
      if (least === null) return { items: [], next: null }
      const part = search === undefined ? [null, null] : [containing(search), endingWith(search)]
      const values = [
        source,
        after ?? null,
        limit + 1,
        createdSince ?? null,
        least ?? null,
        ...part,
      ]
      const rows = statuses?.length
        ? await db.all<RunRow>(RUNS_IN, [...values, [...new Set(statuses)]])
        : await db.all<RunRow>(RUNS, values)
      return toListing(rows, limit, toRun)
    },

    idsEnding: async (suffix, kind) => {
      if (!isIdEnding(suffix)) return []
      const statement = kind === 'run' ? RUNS_ENDING : TARGETS_ENDING
      return (await db.all<{ id: string }>(statement, [suffix.toLowerCase()])).map((row) => row.id)
    },
  }
}

async function leastSince(db: Database, createdSince: number): Promise<string | null> {
  return (await db.all<{ id: string | null }>(LEAST_SINCE, [createdSince]))[0]!.id
}
