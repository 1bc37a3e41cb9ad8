import { AlreadyRunningError } from '../../model/errors.ts'
import { isLive } from '../../model/run.ts'
import type { RunMove, Store } from '../store.ts'
import { recordAudit } from './audit.ts'
import { sql, type Connection, type Database } from './database.ts'
import { addOnlyTarget, LIVE, findRunState, refuseOtherLive, runState } from './runs.ts'
import { addCounts } from './counters.ts'

const MOVE = sql('move')`
  UPDATE run SET status = :to,
                 error = CASE WHEN :to = 'interrupted' THEN NULL ELSE :because END,
                 finished_at = CASE WHEN :to = 'interrupted' THEN NULL ELSE :now END
   WHERE id = :run AND status IN ${LIVE} AND (:to <> 'interrupted' OR status = 'running')
     AND (:onlyStatus IS NULL OR status = :onlyStatus)
     AND (:onlyActivityAt IS NULL OR :onlyActivityAt =
          coalesce((SELECT max(last_activity_at) FROM run_counters WHERE run_id = :run), created_at))
     AND (:onlyResumes IS NULL OR resumes = :onlyResumes)
     AND (NOT :onlyUnheld OR NOT EXISTS (
          SELECT 1 FROM target WHERE run_id = :run AND status = 'in_progress'))
`
/** Their holders find the claim gone. A timeout is not a crash. */
const RELEASE_TARGETS = sql('move:release')`
  UPDATE target SET status = 'planned', claim_id = NULL, ready_at = 0, last_error = :because,
                    crashes = max(crashes - 1, 0), crashes_alone = max(crashes_alone - claimed_alone, 0)
   WHERE run_id = :run AND status = 'in_progress'
  RETURNING group_name
`
const QUEUE_RETRY = sql('retry:insert')`
  INSERT INTO run (id, source, kind, status, policy, created_at, retry_of, input, profile)
  SELECT :newRun, source, kind, 'queued', policy, :now, id, input, profile FROM run WHERE id = :run
`
const TARGET_OF = sql('retry:target')`SELECT key, url FROM target WHERE run_id = :run LIMIT 1`

export function runMoveMethods(db: Database): Pick<Store, 'moveRun' | 'retryRun'> {
  return {
    moveRun: (move) => db.write('move', (tx) => moveRun(tx, move)),

    retryRun: ({ run, newRun, actor, because }) =>
      db.write('retry', (tx) => {
        const { source, kind, status } = runState(tx, run)
        if (findRunState(tx, newRun)) return // asked again
        refuseOtherLive(tx, source, run)
        const now = tx.now()
        if (
          isLive(status) &&
          !move(tx, { run, to: 'failed', because, expected: { isUnclaimed: true } }, now)
        ) {
          throw new AlreadyRunningError(source, run)
        }
        tx.run(QUEUE_RETRY, { run, newRun, now })
        const target = tx.get<{ key: string; url: string | null }>(TARGET_OF, { run })
        if (kind === 'single' && target) addOnlyTarget(tx, newRun, target, now)
        const after = { status: isLive(status) ? 'failed' : status, newRun }
        const entry = { actor, action: 'retry', because, source, run }
        recordAudit(tx, { ...entry, before: { status }, after })
      }),
  }
}

/** The same inside a transaction of its caller. */
export function moveRun(tx: Connection, request: RunMove): boolean {
  const { run, to, actor, action, because, evidence } = request
  const now = tx.now()
  const stands = findRunState(tx, run)
  if (!stands || !move(tx, request, now)) return false
  const { source, status } = stands
  const entry = { actor, action, because, evidence, source, run }
  recordAudit(tx, { ...entry, before: { status }, after: { status: to } })
  return true
}

function move(
  tx: Connection,
  { run, to, because, expected }: Pick<RunMove, 'run' | 'to' | 'because' | 'expected'>,
  now: number,
): boolean {
  const moved = tx.run(MOVE, {
    run,
    to,
    because,
    now,
    onlyStatus: expected.status ?? null,
    onlyActivityAt: expected.lastActivityAt ?? null,
    onlyResumes: expected.resumes ?? null,
    onlyUnheld: expected.isUnclaimed ? 1 : 0,
  })
  if (moved === 0) return false
  const isTimeout = to === 'interrupted' || to === 'failed'
  if (isTimeout) {
    for (const { group_name } of tx.all<{ group_name: string }>(RELEASE_TARGETS, {
      run,
      because,
    })) {
      addCounts(tx, run, group_name, { in_progress: -1, planned: 1 }, now)
    }
  }
  return true
}
