import type { TargetStatus } from '../../model/target.ts'
import type { ReplanRequest, ReplanResult, ParkedTarget, Store } from '../store.ts'
import { recordAudit } from './audit.ts'
import { sql, type Connection, type Database } from './database.ts'
import { refuseOtherLive, runState } from './runs.ts'
import { addCounts } from './counters.ts'
import { isLive, type RunStatus } from '../../model/run.ts'
import { unknownTarget, UsageError } from '../../model/errors.ts'
import { shortId } from '../../model/id.ts'

/** All of a run that fit. */
const MATCHING = /* sql */ `
  run_id = :run AND status IN (SELECT value FROM json_each(:statuses))
    AND (:groups IS NULL OR group_name IN (SELECT value FROM json_each(:groups)))
    AND (:attemptsMax IS NULL OR attempts <= :attemptsMax)
`
/** Of these the ones that fit. Found by their ids alone (the plus hides a column from the planner), so that a few cost a few. */
const NAMED = /* sql */ `
  id IN (SELECT value FROM json_each(:targets))
    AND +run_id = :run AND +status IN (SELECT value FROM json_each(:statuses))
    AND (:groups IS NULL OR group_name IN (SELECT value FROM json_each(:groups)))
    AND (:attemptsMax IS NULL OR attempts <= :attemptsMax)
`
const COUNT = sql('replan:count')`
  SELECT group_name, status, count(*) AS count FROM target WHERE ${MATCHING} GROUP BY group_name, status
`
export const COUNT_NAMED = sql('replan:count-named')`
  SELECT group_name, status, count(*) AS count FROM target WHERE ${NAMED} GROUP BY group_name, status
`
/** An operator wants another attempt: errors and crashes are reset, attempts are not. */
export const TRY_AGAIN = /* sql */ `
  status = 'planned', ready_at = CASE WHEN checkpoint_seq > 0 THEN 0 END, claim_id = NULL, errors = 0,
  crashes = 0, crashes_alone = 0, crashes_since_epoch = epoch, finished_at = NULL, acknowledged_at = NULL
`
const REPLAN = sql('replan')`
  UPDATE target SET ${TRY_AGAIN} WHERE ${MATCHING}
`
export const REPLAN_NAMED = sql('replan:named')`
  UPDATE target SET ${TRY_AGAIN} WHERE ${NAMED}
`
const HAS_OPEN = sql('replan:open')`
  SELECT 1 FROM target WHERE run_id = :run AND status IN ('planned', 'in_progress') LIMIT 1
`
const REOPEN = sql('replan:reopen')`
  UPDATE run SET status = CASE WHEN started_at IS NULL THEN 'queued' ELSE 'interrupted' END,
                 finished_at = NULL, acknowledged_at = NULL, error = NULL, reopened_at = :now
   WHERE id = :run
  RETURNING status
`
/** Fences off the workers that held them when the run ended. */
const FENCE_OFF = sql('reopen:fence')`
  UPDATE target SET status = 'planned', epoch = epoch + 1, claim_id = NULL, ready_at = 0,
                    crashes = max(crashes - 1, 0), crashes_alone = max(crashes_alone - claimed_alone, 0)
   WHERE run_id = :run AND status = 'in_progress'
  RETURNING group_name
`
const TARGET_STATE = sql('target:state')`
  SELECT run_id, group_name, status, page FROM target WHERE id = :id
`
const PARK = sql('target:park')`
  UPDATE target SET status = 'parked', claim_id = NULL, last_error = :because, finished_at = :now, acknowledged_at = NULL,
                    epoch = epoch + (status = 'in_progress'),
                    crashes = max(crashes - (status = 'in_progress'), 0),
                    crashes_alone = max(crashes_alone - (status = 'in_progress') * claimed_alone, 0)
   WHERE id = :id
`
const REWIND = sql('target:rewind')`
  UPDATE target SET status = 'planned', epoch = epoch + 1, claim_id = NULL, page = :to,
                    next_url = :next, cursor = :cursor, last_item_id = NULL, checkpoint_hash = NULL, ready_at = 0,
                    errors = 0, crashes = 0, crashes_alone = 0, crashes_since_epoch = epoch,
                    finished_at = NULL, acknowledged_at = NULL
   WHERE id = :id
`

type TargetState = { run_id: string; group_name: string; status: TargetStatus; page: number }

/** Actions of operators on targets. */
export function replanMethods(db: Database): Pick<Store, 'replan' | 'parkTargets' | 'rewind'> {
  return {
    replan: async (request) => {
      if (!request.dryRun) return db.write('replan', (tx) => replan(tx, request))
      const { targets, reopened } = db.read((tx) => previewReplan(tx, request))
      return { targets, reopened }
    },

    parkTargets: ({ targets, actor, because }) =>
      db.write('park-targets', (tx) => {
        const done: ParkedTarget[] = []
        for (const id of targets) {
          const { run_id: run, group_name, status: from } = targetState(tx, id)
          if (from === 'done' || from === 'parked') continue
          const now = tx.now()
          tx.run(PARK, { id, because, now })
          addCounts(tx, run, group_name, { [from]: -1, parked: 1 }, now)
          const { source } = runState(tx, run)
          const [before, after] = [{ status: from }, { status: 'parked' }]
          const entry = { actor, action: 'park', because, source, run, target: id }
          recordAudit(tx, { ...entry, before, after })
          done.push({ target: id, run, from })
        }
        return done
      }),

    rewind: ({ target: id, to, next, cursor, actor, because }) =>
      db.write('rewind', (tx) => {
        const { run_id: run, group_name, status, page } = targetState(tx, id)
        if (to > page)
          throw new UsageError(`Target ${shortId(id)} is at page ${page}: it can only go back.`)
        const { source, status: runStatus } = runState(tx, run)
        refuseOtherLive(tx, source, run)
        const now = tx.now()
        tx.run(REWIND, { id, to, next, cursor: cursor === null ? null : JSON.stringify(cursor) })
        const change = status === 'planned' ? {} : { [status]: -1, planned: 1 }
        addCounts(tx, run, group_name, change, now)
        if (!isLive(runStatus)) reopen(tx, run, now)
        const entry = { actor, action: 'rewind', because, source, run, target: id }
        const after = { status: 'planned', page: to }
        recordAudit(tx, { ...entry, before: { status, page }, after })
      }),
  }
}

/** Reopens an ended run. Returns its status. */
function reopen(tx: Connection, run: string, now: number): string {
  fenceOff(tx, run, now)
  return tx.get<{ status: string }>(REOPEN, { run, now })!.status
}

/** Puts targets back in the queue that were held when their run ended: nothing else would release them. */
export function fenceOff(tx: Connection, run: string, now: number): void {
  for (const { group_name } of tx.all<{ group_name: string }>(FENCE_OFF, { run })) {
    addCounts(tx, run, group_name, { in_progress: -1, planned: 1 }, now)
  }
}

function targetState(tx: Connection, id: string): TargetState {
  const found = tx.get<TargetState>(TARGET_STATE, { id })
  if (!found) throw unknownTarget(id)
  return found
}

function chosen({ run, statuses, targets, groups, attemptsMax }: ReplanRequest) {
  return {
    run,
    statuses: JSON.stringify(statuses),
    ...(targets && { targets: JSON.stringify(targets) }),
    groups: groups ? JSON.stringify(groups) : null,
    attemptsMax: attemptsMax ?? null,
  }
}

type Chosen = { group_name: string; status: TargetStatus; count: number }

type ReplanPreview = ReplanResult & { source: string; status: RunStatus; rows: Chosen[] }

/** What would be put back in the queue, and whether that opens the run again. */
function previewReplan(tx: Connection, request: ReplanRequest): ReplanPreview {
  const { source, status } = runState(tx, request.run)
  refuseOtherLive(tx, source, request.run)
  const rows = tx.all<Chosen>(request.targets ? COUNT_NAMED : COUNT, chosen(request))
  const targets = rows.reduce((sum, row) => sum + row.count, 0)
  return {
    source,
    status,
    rows,
    targets,
    reopened: !isLive(status) && reopensRun(tx, request, targets),
  }
}

/** Whether the run has something to live for again. */
function reopensRun(tx: Connection, { run, reopen }: ReplanRequest, targets: number): boolean {
  if (targets > 0 || reopen === 'for-more') return true
  const { planned_at: plannedAt } = runState(tx, run)
  return reopen && (plannedAt === null || tx.get(HAS_OPEN, { run }) !== undefined)
}

function replan(tx: Connection, request: ReplanRequest): ReplanResult {
  const { run, action, actor, because } = request
  const now = tx.now()
  const { source, status, rows, targets, reopened } = previewReplan(tx, request)
  if (targets === 0 && !reopened) return { targets, reopened }
  tx.run(request.targets ? REPLAN_NAMED : REPLAN, chosen(request))
  for (const row of rows)
    addCounts(tx, run, row.group_name, { [row.status]: -row.count, planned: row.count }, now)
  const becomes = reopened ? reopen(tx, run, now) : status
  const target = request.targets?.length === 1 ? request.targets[0]! : null
  const before = { status, targets: byStatus(rows) }
  const after = { status: becomes, targets: { planned: targets } }
  recordAudit(tx, { actor, action, because, source, run, target, before, after })
  return { targets, reopened }
}

function byStatus(rows: readonly Chosen[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status, count } of rows) counts[status] = (counts[status] ?? 0) + count
  return counts
}
