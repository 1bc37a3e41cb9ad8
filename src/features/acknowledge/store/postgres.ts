import { unknownRun } from '../../../core/model/errors.ts'
import { recordAuditEntries, sql, type Database } from '../../../core/store/postgres/kit.ts'
import {
  acknowledgeEntry,
  type AcknowledgedCount,
  type AcknowledgeRequest,
  type AcknowledgeResult,
  type AcknowledgeStore,
} from './store.ts'

/** $1 run, $2 targets or null, $3 groups or null, $4 undo. */
const OF_RUN = /* sql */ `
  run_id = $1 AND $2::uuid[] IS NULL AND status IN ('failed', 'stuck', 'parked')
    AND ($3::text[] IS NULL OR group_name = ANY ($3)) AND (acknowledged_at IS NULL) <> $4::bool
`
const NAMED = /* sql */ `
  id = ANY ($2::uuid[]) AND run_id = $1 AND status IN ('failed', 'stuck', 'parked')
    AND ($3::text[] IS NULL OR group_name = ANY ($3)) AND (acknowledged_at IS NULL) <> $4::bool
`
const COUNT = (name: string, where: string) =>
  sql(`acknowledge:count-${name}`, 'anew')`
  SELECT count(*)::int AS count FROM unstuck.target WHERE ${where}
`
// Locked in the order of their ids, as by everything that changes several targets.
const MARK = (name: string, where: string) =>
  sql(`acknowledge:${name}`, 'anew')`
  WITH chosen AS MATERIALIZED (
    SELECT id FROM unstuck.target WHERE ${where} ORDER BY id FOR UPDATE
  ),
  marked AS (
    UPDATE unstuck.target t SET acknowledged_at = CASE WHEN NOT $4::bool THEN clock_timestamp() END
      FROM chosen WHERE t.id = chosen.id
    RETURNING 1
  )
  SELECT count(*)::int AS count FROM marked
`
const [COUNT_OF_RUN, COUNT_NAMED] = [COUNT('run', OF_RUN), COUNT('named', NAMED)]
const [MARK_OF_RUN, MARK_NAMED] = [MARK('targets', OF_RUN), MARK('named', NAMED)]

const RUN_STATE = /* sql */ `
  SELECT source, status IN ('failed', 'abandoned') AND (acknowledged_at IS NULL) <> $2::bool AS "isChanged"
    FROM unstuck.run WHERE id = $1
`
const RUN = sql('acknowledge:run-state')`${RUN_STATE}`
const LOCK_RUN = sql('acknowledge:lock-run')`${RUN_STATE} FOR UPDATE`
const MARK_RUN = sql('acknowledge:run')`
  UPDATE unstuck.run SET acknowledged_at = CASE WHEN NOT $2::bool THEN clock_timestamp() END WHERE id = $1
`
const ACKNOWLEDGED_COUNTS = sql('acknowledge:counts', 'anew')`
  SELECT run_id AS run, status, count(*)::int AS count FROM unstuck.target
   WHERE acknowledged_at IS NOT NULL AND ($1::uuid[] IS NULL OR run_id = ANY ($1))
     AND status IN ('failed', 'stuck', 'parked')
   GROUP BY run_id, status
`

export const ACKNOWLEDGE_STATEMENTS = {
  ofRun: [COUNT_OF_RUN, MARK_OF_RUN],
  named: [COUNT_NAMED, MARK_NAMED],
  counts: ACKNOWLEDGED_COUNTS,
}

type Reader = Pick<Database, 'all'>

export function acknowledgeMethods(db: Database): AcknowledgeStore {
  return {
    acknowledge: (request) =>
      request.dryRun
        ? count(db, request)
        : db.transaction('acknowledge', async (connection) => {
            const { source, isRunChanged } = await runState(connection, LOCK_RUN, request)
            const statement = request.targets ? MARK_NAMED : MARK_OF_RUN
            const targets = await countOf(connection, statement, request)
            // A run with a target that needs attention again is not acknowledged as a whole.
            if (isRunChanged || (request.undo && targets > 0))
              await connection.all(MARK_RUN, [request.run, request.undo])
            const result = { targets, isRunChanged }
            if (targets > 0 || isRunChanged)
              await recordAuditEntries(connection, [acknowledgeEntry(request, source, result)])
            return result
          }),

    acknowledgedCounts: (runs) => db.all<AcknowledgedCount>(ACKNOWLEDGED_COUNTS, [runs]),
  }
}

async function count(db: Reader, request: AcknowledgeRequest): Promise<AcknowledgeResult> {
  const { isRunChanged } = await runState(db, RUN, request)
  const statement = request.targets ? COUNT_NAMED : COUNT_OF_RUN
  return { targets: await countOf(db, statement, request), isRunChanged }
}

async function countOf(
  db: Reader,
  statement: typeof RUN,
  { run, targets, groups, undo }: AcknowledgeRequest,
): Promise<number> {
  const values = [run, targets ?? null, groups ?? null, undo]
  const [row] = await db.all<{ count: number }>(statement, values)
  return row!.count
}

async function runState(
  db: Reader,
  statement: typeof RUN,
  { run, targets, groups, undo }: AcknowledgeRequest,
) {
  type Row = { source: string; isChanged: boolean }
  const [row] = await db.all<Row>(statement, [run, undo])
  if (!row) throw unknownRun(run)
  return { source: row.source, isRunChanged: !targets && !groups && row.isChanged }
}
