import { LIMITS } from '../../model/limits.ts'
import { TARGET_STATUSES, DEAD_LETTER_STATUSES } from '../../model/target.ts'
import { containing } from '../like.ts'
import { toRunTotals } from '../list-rows.ts'
import {
  checkAfter,
  targetColumns,
  toHeldTarget,
  toListing,
  toTarget,
  type TargetRow,
  toCounts,
  type CountersRow,
} from '../rows.ts'
import type { Store, DeadLetter } from '../store.ts'
import { sql, type Database, type Sql } from './database.ts'
import type { RunStatus } from '../../model/run.ts'
import { SUMS } from './counters.ts'

const TARGET = sql('target')`SELECT * FROM target WHERE id = :id`
const N = LIMITS.listed
// What is long is cut by the database: a page of the list weighs the same whatever is in it.
export const LISTED = /* sql */ `
  ${targetColumns('target')}, claimed_at, last_activity_at, finished_at, acknowledged_at, substr(next_url, 1, ${N}) AS next_url,
  substr(cursor, 1, ${N}) AS cursor, substr(last_error, 1, ${N}) AS last_error,
  max(coalesce(length(cursor), 0), coalesce(length(last_error), 0), coalesce(length(next_url), 0)) > ${N} AS cut
`
const TARGETS = (name: string, columns: string): Sql =>
  sql(name)`
  SELECT ${columns} FROM target
   WHERE run_id = :run AND status = :status AND id > :after AND (:group IS NULL OR group_name = :group)
     AND (:acknowledged IS NULL OR (acknowledged_at IS NOT NULL) = :acknowledged)
     AND (:part IS NULL OR key LIKE :part ESCAPE '\\' OR last_error LIKE :part ESCAPE '\\')
   ORDER BY id LIMIT :limit
`
const CUT = TARGETS('targets', LISTED)
const WHOLE = TARGETS('targets:whole', '*')
export const BY_KEY = sql('targets:by-key')`
  SELECT * FROM target WHERE run_id = :run AND key IN (SELECT value FROM json_each(:keys))
`
export const TARGETS_ENDING = sql('targets:ending')`
  SELECT id FROM target WHERE id LIKE '%' || :suffix LIMIT 3
`

export type SqliteTargetRow = Omit<TargetRow, 'cursor'> & { cursor: string | null }

const DEAD_LETTERS = sql('dead-letters')`
  SELECT t.id, t.key, t.run_id AS run, r.source, t.status, substr(coalesce(t.last_error, ''), 1, ${LIMITS.listed}) AS error,
         coalesce(t.finished_at, t.last_activity_at) AS at
    FROM target t INDEXED BY target_dead_letter CROSS JOIN run r ON r.id = t.run_id
   WHERE t.id > :after AND t.status IN ('failed', 'stuck', 'parked')
     AND t.status IN (SELECT value FROM json_each(:statuses))
     AND (:acknowledged IS NULL OR (t.acknowledged_at IS NOT NULL) = :acknowledged)
     AND (:source IS NULL OR r.source = :source)
   ORDER BY t.id LIMIT :limit
`
export const RUN_TOTALS = sql('totals:runs')`
  SELECT status, count(*) AS count FROM run GROUP BY status
`
const TARGET_TOTALS = sql('totals:targets')`SELECT ${SUMS} FROM run_counters t`

/** Targets and totals. */
export function listMethods(db: Database) {
  return {
    target: async (id) => {
      const row = db.read((tx) => tx.get<SqliteTargetRow>(TARGET, { id }))
      return row ? readTarget(row) : null
    },

    targets: async (run, { statuses, group = null, search, after, limit, whole, ...filter }) => {
      checkAfter({ after })
      const part = search === undefined ? null : containing(search)
      const acknowledged = toFlag(filter.acknowledged)
      const page = { run, group, part, acknowledged, after: after ?? '', limit: limit + 1 }
      // One walk along the index per status, merged: a page of the list costs the same however long the list is.
      const asked = new Set(statuses?.length ? statuses : TARGET_STATUSES)
      const rows = db.snapshot((tx) =>
        [...asked].flatMap((status) =>
          tx.all<SqliteTargetRow>(whole ? WHOLE : CUT, { ...page, status }),
        ),
      )
      return toListing(
        rows.sort((a, b) => (a.id < b.id ? -1 : 1)),
        limit,
        readTarget,
      )
    },

    targetsByKey: async (run, keys) =>
      db.read((tx) =>
        tx.all<SqliteTargetRow>(BY_KEY, { run, keys: JSON.stringify(keys) }).map(readTarget),
      ),

    deadLetters: async ({ source = null, statuses, acknowledged, after, limit }) => {
      checkAfter({ after })
      const asked = JSON.stringify(statuses?.length ? statuses : DEAD_LETTER_STATUSES)
      const chosen = { source, statuses: asked, acknowledged: toFlag(acknowledged) }
      const values = { ...chosen, after: after ?? '', limit: limit + 1 }
      const rows = db.read((tx) => tx.many<DeadLetter>(DEAD_LETTERS, values))
      return toListing(rows, limit, (row) => row)
    },

    runTotals: async () =>
      toRunTotals(db.read((tx) => tx.all<{ status: RunStatus; count: number }>(RUN_TOTALS))),
    targetTotals: async () => toCounts(db.read((tx) => tx.get<CountersRow>(TARGET_TOTALS)!)),
  } satisfies Partial<Store>
}

/** SQLite has no booleans. */
function toFlag(value: boolean | undefined): number | null {
  return value === undefined ? null : Number(value)
}

/** For recovery. */
export function readHeldTarget(row: SqliteTargetRow): ReturnType<typeof toHeldTarget> {
  return toHeldTarget({ ...row, cursor: readJson(row.cursor) })
}

/** For display. */
export function readTarget(row: SqliteTargetRow): ReturnType<typeof toTarget> {
  return toTarget({ ...row, cursor: readJson(row.cursor) })
}

/** JSON from the store; text that is not JSON (edited by hand) is shown as it is. */
export function readJson(text: string | null): unknown {
  if (text === null) return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
