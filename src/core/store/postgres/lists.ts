import { LIMITS } from '../../model/limits.ts'
import { TARGET_STATUSES, DEAD_LETTER_STATUSES } from '../../model/target.ts'
import { containing } from '../like.ts'
import { toRunTotals } from '../list-rows.ts'
import {
  checkAfter,
  targetColumns,
  toListing,
  toTarget,
  type TargetRow,
  toCounts,
  type CountersRow,
} from '../rows.ts'
import type { Store, DeadLetter } from '../store.ts'
import { ms, sql, type Database, type Sql } from './database.ts'
import { stripNul } from './strip-nul.ts'
import type { RunStatus } from '../../model/run.ts'
import { SUMS } from './counters.ts'

const COLUMNS = (texts: string): string => /* sql */ `
  ${targetColumns('t')}, ${texts}, ${ms('t.claimed_at')} AS claimed_at,
  ${ms('t.last_activity_at')} AS last_activity_at, ${ms('t.finished_at')} AS finished_at, ${ms('t.acknowledged_at')} AS acknowledged_at
`
const TARGET_COLUMNS = COLUMNS('t.next_url, t.cursor, t.last_error')
const N = LIMITS.listed
// What is long is cut by the database: a page of the list weighs the same whatever is in it.
export const LISTED = COLUMNS(/* sql */ `
  left(t.next_url, ${N}) AS next_url, left(t.last_error, ${N}) AS last_error,
  CASE WHEN length(t.cursor::text) > ${N} THEN to_jsonb(left(t.cursor::text, ${N})) ELSE t.cursor END AS cursor,
  greatest(length(t.cursor::text), length(t.last_error), length(t.next_url), 0) > ${N} AS cut`)
const TARGET = sql('target')`SELECT ${TARGET_COLUMNS} FROM unstuck.target t WHERE t.id = $1`

// One walk along the index per status, merged: a page of the list costs the same however long the list is.
const TARGETS = (name: string, columns: string): Sql =>
  sql(name)`
  SELECT ${columns}
    FROM unnest($2::text[]) AS asked (status)
   CROSS JOIN LATERAL (
     SELECT * FROM unstuck.target
      WHERE run_id = $1 AND status = asked.status AND id > $4 AND ($3::text IS NULL OR group_name = $3)
        AND ($7::bool IS NULL OR (acknowledged_at IS NOT NULL) = $7)
        AND ($6::text IS NULL OR key ILIKE $6 OR last_error ILIKE $6)
      ORDER BY id LIMIT $5
   ) AS t
   ORDER BY t.id LIMIT $5
`
const CUT = TARGETS('targets', LISTED)
const WHOLE = TARGETS('targets:whole', TARGET_COLUMNS)
export const BY_KEY = sql('targets:by-key')`
  SELECT ${TARGET_COLUMNS} FROM unstuck.target t WHERE t.run_id = $1 AND t.key = ANY ($2::text[])
`
export const TARGETS_ENDING = sql('targets:ending')`
  SELECT id FROM unstuck.target WHERE right(id::text, length($1)) = $1 LIMIT 3
`

/** Sorts before every id. */
export const BEFORE_ALL = '00000000-0000-0000-0000-000000000000'

export const DEAD_LETTERS = sql('dead-letters', 'anew')`
  SELECT t.id, t.key, t.run_id AS run, r.source, t.status, left(coalesce(t.last_error, ''), ${LIMITS.listed}) AS error,
         ${ms('coalesce(t.finished_at, t.last_activity_at)')} AS at
    FROM unstuck.target t JOIN unstuck.run r ON r.id = t.run_id
   WHERE t.id > $1 AND t.status IN ('failed', 'stuck', 'parked') AND t.status = ANY ($3::text[])
     AND ($4::text IS NULL OR r.source = $4) AND ($5::bool IS NULL OR (t.acknowledged_at IS NOT NULL) = $5)
   ORDER BY t.id LIMIT $2
`
export const RUN_TOTALS = sql('totals:runs')`
  SELECT status, count(*)::int AS count FROM unstuck.run GROUP BY status
`
const TARGET_TOTALS = sql('totals:targets')`SELECT ${SUMS} FROM unstuck.run_counters t`

/** Targets and totals. */
export function listMethods(db: Database) {
  return {
    target: async (id) => {
      const [row] = await db.all<TargetRow>(TARGET, [id])
      return row ? toTarget(row) : null
    },
    targets: async (run, { statuses, group = null, search, after, limit, whole, ...filter }) => {
      checkAfter({ after })
      const asked = [...new Set(statuses?.length ? statuses : TARGET_STATUSES)]
      const part = search === undefined ? null : containing(search)
      const from = after ?? BEFORE_ALL
      const values = [run, asked, group, from, limit + 1, part, filter.acknowledged ?? null]
      const rows = await db.all<TargetRow>(whole ? WHOLE : CUT, values)
      return toListing(rows, limit, toTarget)
    },
    targetsByKey: async (run, keys) => {
      // One that PostgreSQL cannot keep is not there.
      const asked = keys.filter((key) => key === stripNul(key))
      return (await db.all<TargetRow>(BY_KEY, [run, asked])).map(toTarget)
    },
    deadLetters: async ({ source = null, statuses, acknowledged = null, after, limit }) => {
      checkAfter({ after })
      const asked = statuses?.length ? statuses : DEAD_LETTER_STATUSES
      const rows = await db.all<DeadLetter>(DEAD_LETTERS, [
        after ?? BEFORE_ALL,
        limit + 1,
        asked,
        source,
        acknowledged,
      ])
      return toListing(rows, limit, (row) => row)
    },

    runTotals: async () =>
      toRunTotals(await db.all<{ status: RunStatus; count: number }>(RUN_TOTALS)),
    targetTotals: async () => toCounts((await db.all<CountersRow>(TARGET_TOTALS))[0]!),
  } satisfies Partial<Store>
}
