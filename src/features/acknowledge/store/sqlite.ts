import { unknownRun } from '../../../core/model/errors.ts'
import { recordAudit, sql, type Connection, type Database } from '../../../core/store/sqlite/kit.ts'
import {
  acknowledgeEntry,
  type AcknowledgedCount,
  type AcknowledgeRequest,
  type AcknowledgeResult,
  type AcknowledgeStore,
} from './store.ts'

/** The dead letters that are meant. The plus hides a column from the planner: the named are found by their ids. */
const OF_RUN = /* sql */ `
  run_id = :run AND status IN ('failed', 'stuck', 'parked')
    AND (:groups IS NULL OR group_name IN (SELECT value FROM json_each(:groups)))
`
const NAMED = /* sql */ `
  id IN (SELECT value FROM json_each(:targets))
    AND +run_id = :run AND +status IN ('failed', 'stuck', 'parked')
    AND (:groups IS NULL OR group_name IN (SELECT value FROM json_each(:groups)))
`
// Its plus keeps the index of acknowledged targets for their counts.
const CHANGES = '(+acknowledged_at IS NULL) <> :undo'
const COUNT = (name: string, where: string) =>
  sql(
    `acknowledge:count-${name}`,
  )`SELECT count(*) AS count FROM target WHERE ${where} AND ${CHANGES}`
const MARK = (name: string, where: string) =>
  sql(`acknowledge:${name}`)`
  UPDATE target SET acknowledged_at = iif(:undo, NULL, :now) WHERE ${where} AND ${CHANGES}
`
const [COUNT_OF_RUN, COUNT_NAMED] = [COUNT('run', OF_RUN), COUNT('named', NAMED)]
const [MARK_OF_RUN, MARK_NAMED] = [MARK('targets', OF_RUN), MARK('named', NAMED)]

const RUN = sql('acknowledge:run-state')`
  SELECT source, status IN ('failed', 'abandoned') AND (acknowledged_at IS NULL) <> :undo AS isChanged
    FROM run WHERE id = :run
`
const MARK_RUN = sql('acknowledge:run')`
  UPDATE run SET acknowledged_at = iif(:undo, NULL, :now) WHERE id = :run
`
const ACKNOWLEDGED_COUNTS = sql('acknowledge:counts')`
  SELECT run_id AS run, status, count(*) AS count FROM target INDEXED BY target_acknowledged
   WHERE acknowledged_at IS NOT NULL AND run_id IN (SELECT value FROM json_each(:runs))
     AND status IN ('failed', 'stuck', 'parked')
   GROUP BY run_id, status
`
const ALL_ACKNOWLEDGED_COUNTS = sql('acknowledge:all-counts')`
  SELECT run_id AS run, status, count(*) AS count FROM target INDEXED BY target_acknowledged
   WHERE acknowledged_at IS NOT NULL AND status IN ('failed', 'stuck', 'parked')
   GROUP BY run_id, status
`

export function acknowledgeMethods(db: Database): AcknowledgeStore {
  return {
    acknowledge: async (request) =>
      request.dryRun
        ? db.read((tx) => count(tx, request))
        : db.write('acknowledge', (tx) => acknowledge(tx, request)),

    acknowledgedCounts: async (runs) =>
      db
        .read((tx) =>
          runs === null
            ? tx.all<AcknowledgedCount>(ALL_ACKNOWLEDGED_COUNTS)
            : tx.all<AcknowledgedCount>(ACKNOWLEDGED_COUNTS, { runs: JSON.stringify(runs) }),
        )
        .map((row) => ({ ...row })),
  }
}

function chosen({ run, targets, groups, undo }: AcknowledgeRequest) {
  return {
    run,
    undo: undo ? 1 : 0,
    groups: groups ? JSON.stringify(groups) : null,
    ...(targets && { targets: JSON.stringify(targets) }),
  }
}

function count(tx: Connection, request: AcknowledgeRequest): AcknowledgeResult {
  const statement = request.targets ? COUNT_NAMED : COUNT_OF_RUN
  const { count: targets } = tx.get<{ count: number }>(statement, chosen(request))!
  return { targets, isRunChanged: runState(tx, request).isRunChanged }
}

function runState(tx: Connection, { run, targets, groups, undo }: AcknowledgeRequest) {
  type Row = { source: string; isChanged: number }
  const row = tx.get<Row>(RUN, { run, undo: undo ? 1 : 0 })
  if (!row) throw unknownRun(run)
  return { source: row.source, isRunChanged: !targets && !groups && row.isChanged === 1 }
}

function acknowledge(tx: Connection, request: AcknowledgeRequest): AcknowledgeResult {
  const now = tx.now()
  const { source, isRunChanged } = runState(tx, request)
  const values = chosen(request)
  const targets = tx.run(request.targets ? MARK_NAMED : MARK_OF_RUN, { ...values, now })
  // A run with a target that needs attention again is not acknowledged as a whole.
  if (isRunChanged || (request.undo && targets > 0))
    tx.run(MARK_RUN, { run: request.run, undo: values.undo, now })
  const result = { targets, isRunChanged }
  if (targets > 0 || isRunChanged) recordAudit(tx, acknowledgeEntry(request, source, result))
  return result
}
