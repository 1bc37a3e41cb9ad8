import { isIdEnding } from '../../model/id.ts'
import type { RunStatus } from '../../model/run.ts'
import { containing, endingWith } from '../like.ts'
import { checkAfter, toListing } from '../rows.ts'
import type { RunFilter, Store } from '../store.ts'
import { sql, type Connection, type Database } from './database.ts'
import { TARGETS_ENDING } from './lists.ts'
import { LISTED_COLUMNS, readRun, type SqliteRunRow } from './runs.ts'

const IDS = (name: string, index: string, where: string) =>
  sql(`runs:${name}`)`
  SELECT id FROM run ${index}
   WHERE id < :after AND id >= :from AND ${where} AND created_at >= :since
     AND (:part IS NULL OR source LIKE :part ESCAPE '\\' OR id LIKE :end ESCAPE '\\')
   ORDER BY id DESC LIMIT :limit
`
const ALL = IDS('all', '', 'true')
const OF_SOURCE = IDS('source', 'INDEXED BY run_by_source', 'source = :source')
const IN_STATUS = IDS('status', 'INDEXED BY run_by_status', 'status = :status')
const OF_SOURCE_IN_STATUS = IDS(
  'source-status',
  'INDEXED BY run_listed',
  'source = :source AND status = :status',
)
const WITH_DEAD_LETTERS = sql('runs:dead-letters')`
  SELECT id FROM run
   WHERE id < :after AND (:source IS NULL OR source = :source)
     AND id IN (
       SELECT run_id FROM target INDEXED BY target_dead_letter
        WHERE status IN ('failed', 'stuck', 'parked') AND (acknowledged_at IS NOT NULL) = :acknowledged)
   ORDER BY id DESC LIMIT :limit
`

/** Ids are made by other clocks than this time is from; nothing younger has a lesser id than this one. */
const LEAST_SINCE = sql('runs:since')`
  SELECT min(id) AS id FROM run INDEXED BY run_by_age WHERE created_at >= :since
`

const BY_ID = sql('runs:by-id')`
  SELECT ${LISTED_COLUMNS} FROM run r LEFT JOIN run_counters t ON t.run_id = r.id
   WHERE r.id IN (SELECT value FROM json_each(:ids)) GROUP BY r.id ORDER BY r.id DESC
`
// From one source that ever failed to the next along the index, and to the newest run of each, in this order.
export const LAST_FAILED = sql('runs:last-failed')`
  WITH RECURSIVE failing (source) AS (
    SELECT min(source) FROM run INDEXED BY run_listed WHERE status = 'failed'
     UNION ALL
    SELECT (SELECT min(source) FROM run INDEXED BY run_listed WHERE status = 'failed' AND source > f.source)
      FROM failing f WHERE f.source IS NOT NULL
  )
  SELECT r.id
    FROM failing f
   CROSS JOIN run r
   WHERE r.id = (SELECT max(id) FROM run INDEXED BY run_by_source WHERE source = f.source)
     AND r.status = 'failed'
   ORDER BY r.id DESC LIMIT :limit
`
const RUNS_ENDING = sql('runs:ending')`
  SELECT id FROM run WHERE substr(id, -8) = substr(:suffix, -8) AND id LIKE '%' || :suffix LIMIT 10
`
/** Sorts after every id. */
const AFTER_ALL = '~'

export function runListMethods(db: Database): Pick<Store, 'runs' | 'idsEnding'> {
  return {
    runs: async (filter) => {
      checkAfter(filter)
      const rows = db.snapshot((tx) =>
        tx.all<SqliteRunRow>(BY_ID, { ids: JSON.stringify(idsOf(tx, filter)) }),
      )
      return toListing(rows, filter.limit, readRun)
    },

    idsEnding: async (suffix, kind) => {
      if (!isIdEnding(suffix)) return []
      const statement = kind === 'run' ? RUNS_ENDING : TARGETS_ENDING
      return db.read((tx) => tx.all<{ id: string }>(statement, { suffix }).map((row) => row.id))
    },
  }
}

/** One walk along the index per status, merged: a page of the list costs the same however long the list is. */
function idsOf(tx: Connection, filter: RunFilter): string[] {
  if (filter.latestFailed) {
    return tx.all<{ id: string }>(LAST_FAILED, { limit: filter.limit }).map(({ id }) => id)
  }
  const { source, statuses, search, createdSince, after = AFTER_ALL, limit } = filter
  if (filter.deadLetters) {
    const acknowledged = filter.deadLetters === 'acknowledged' ? 1 : 0
    const values = { source: source ?? null, acknowledged, after, limit: limit + 1 }
    return tx.all<{ id: string }>(WITH_DEAD_LETTERS, values).map(({ id }) => id)
  }
  const page = {
    after,
    limit: limit + 1,
    since: createdSince ?? 0,
    from: createdSince === undefined ? '' : leastSince(tx, createdSince),
    part: search === undefined ? null : containing(search),
    end: search === undefined ? null : endingWith(search),
    ...(source !== undefined && { source }),
  }
  const walk = (status?: RunStatus): string[] => {
    const statement =
      status === undefined
        ? source === undefined
          ? ALL
          : OF_SOURCE
        : source === undefined
          ? IN_STATUS
          : OF_SOURCE_IN_STATUS
    const params = status === undefined ? page : { ...page, status }
    return tx.all<{ id: string }>(statement, params).map(({ id }) => id)
  }
  if (!statuses?.length) return walk()
  const found = [...new Set(statuses)].flatMap((status) => walk(status))
  return found.sort().reverse().slice(0, page.limit)
}

function leastSince(tx: Connection, since: number): string {
  return tx.get<{ id: string | null }>(LEAST_SINCE, { since })?.id ?? AFTER_ALL
}
