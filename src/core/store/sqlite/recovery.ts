import { TARGET_STATUS_AFTER } from '../../model/verdict.ts'
import type { HeldTarget, PendingVerdict, Store } from '../store.ts'
import { recordAudit } from './audit.ts'
import { sql, type Connection, type Database } from './database.ts'
import { addOnlyTarget, insertRetry, LIVE, readRun, RUN, type SqliteRunRow } from './runs.ts'
import { addCounts } from './counters.ts'
import { LISTED, readHeldTarget, type SqliteTargetRow } from './lists.ts'

const CLAIMS_OF = sql('recover:held')`
  SELECT ${LISTED}, (SELECT heartbeats FROM worker w WHERE w.id = worker_id) AS worker_heartbeats FROM target
   WHERE worker_id = :worker AND status = 'in_progress' AND id > :after
     AND EXISTS (SELECT 1 FROM worker w WHERE w.id = :worker)
   ORDER BY id LIMIT :limit
`
// Recovery is fenced too: it changes only the claims it assessed, and only while the worker has not sent another heartbeat.
// Started targets go to the front of the queue. A timeout, where the worker is alive and its target does not progress,
// counts as an error, not as a crash.
const TAKE_BACK = sql('recover:take-back')`
  UPDATE target SET status = :status, claim_id = NULL, last_error = :because,
                    ready_at = CASE WHEN :status = 'planned' THEN coalesce(min(ready_at, 0), 0) END,
                    finished_at = CASE WHEN :status IN ('failed', 'parked') THEN :now END,
                    errors = errors + :timedOut, crashes = max(crashes - :timedOut, 0),
                    crashes_alone = max(crashes_alone - :timedOut * claimed_alone, 0)
   WHERE id = :target AND epoch = :epoch AND claim_id = :claimId AND status = 'in_progress'
     AND checkpoint_seq = :seq
     AND (NOT :timedOut OR last_activity_at = :lastActivityAt)
     AND (:timedOut OR EXISTS (SELECT 1 FROM worker WHERE id = :worker AND heartbeats = :heartbeats))
  RETURNING run_id, group_name, crashes
`
const RECORD_LOST_CLAIM = sql('recover:remember')`
  INSERT OR REPLACE INTO lost_claim (worker_id, target_id, epoch, claimed_alone, parked)
  SELECT :worker, id, epoch, claimed_alone, status = 'parked' FROM target WHERE id = :target
`
const FAIL_RUN = sql('recover:fail-run')`
  UPDATE run SET status = 'failed', error = :because, finished_at = :now
   WHERE id = :run AND status IN ${LIVE}
`
export function recoveryMethods(db: Database): Pick<Store, 'claimsOf' | 'applyVerdicts'> {
  return {
    claimsOf: async (worker, after, limit) =>
      db.read((tx) => {
        type Row = SqliteTargetRow & { worker_heartbeats: number }
        const rows = tx.all<Row>(CLAIMS_OF, { worker, after: after ?? '', limit })
        const runs = new Map<string, HeldTarget['run']>()
        for (const { run_id: id } of rows) {
          if (!runs.has(id)) runs.set(id, readRun(tx.get<SqliteRunRow>(RUN, { id })!))
        }
        return rows.map((row) => ({
          target: readHeldTarget(row),
          run: runs.get(row.run_id)!,
          workerHeartbeats: row.worker_heartbeats,
        }))
      }),

    applyVerdicts: (verdicts, actor) =>
      db.write('recover', (tx) => verdicts.map((verdict) => applyVerdict(tx, verdict, actor))),
  }
}

function applyVerdict(
  tx: Connection,
  { held, decision, liveness, evidence, newRun, isProvisional }: PendingVerdict,
  actor: string,
): boolean {
  const { target, run, workerHeartbeats } = held
  const { action, because } = decision
  const status = TARGET_STATUS_AFTER[action]
  if (!status) return false
  const now = tx.now()
  const taken = tx.get<{ run_id: string; group_name: string; crashes: number }>(TAKE_BACK, {
    target: target.id,
    epoch: target.epoch,
    claimId: target.claimId,
    seq: target.seq,
    worker: target.worker,
    heartbeats: workerHeartbeats,
    timedOut: liveness === 'stalled' ? 1 : 0,
    lastActivityAt: target.lastActivityAt,
    status,
    because,
    now,
  })
  if (!taken) return false

  // Its worker may yet come back.
  if (isProvisional && taken.crashes > 0)
    tx.run(RECORD_LOST_CLAIM, { worker: target.worker, target: target.id })
  addCounts(tx, taken.run_id, taken.group_name, { in_progress: -1, [status]: 1 }, now)
  // One that was cancelled meanwhile is not tried again.
  const isRetried = action === 'retry' && tx.run(FAIL_RUN, { run: run.id, because, now }) > 0
  if (isRetried) {
    insertRetry(tx, { id: newRun, of: run })
    addOnlyTarget(tx, newRun, target, now)
  }
  const { epoch, worker, page } = target
  const entry = { actor, ...decision, evidence, source: run.source, run: run.id, target: target.id }
  const before = { status: target.status, epoch, worker, page }
  recordAudit(tx, { ...entry, before, after: { status, ...(isRetried && { newRun }) } })
  return true
}
