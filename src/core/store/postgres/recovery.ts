import type { RunId } from '../../model/id.ts'
import { TARGET_STATUS_AFTER } from '../../model/verdict.ts'
import { toHeldTarget, toRun, type RunRow, type TargetRow } from '../rows.ts'
import type { NewAuditEntry, PendingVerdict, Store } from '../store.ts'
import { recordAuditEntries } from './audit.ts'
import { ms, sql, type Connection, type Database } from './database.ts'
import { BEFORE_ALL, LISTED } from './lists.ts'
import { queueRetry } from './run-moves.ts'
import { LIVE, RUNS_BY_ID } from './runs.ts'
import { stripNul, stripNulJson } from './strip-nul.ts'
import { ADD_ON_CONFLICT } from './counters.ts'

const CLAIMS_OF = sql('recover:held')`
  SELECT ${LISTED}, w.heartbeats AS worker_heartbeats
    FROM unstuck.target t JOIN unstuck.worker w ON w.id = t.worker_id
   WHERE t.worker_id = $1 AND t.status = 'in_progress' AND t.id > $2
   ORDER BY t.id LIMIT $3
`
// Recovery is fenced too: it changes only the claims it assessed, and only while the worker has not sent another heartbeat.
// The crash that was counted at claim time stays counted, and is recorded where the worker may come back. A timeout, where
// the worker is alive and its target does not progress, is an error and no crash. Rows that are locked for a change are no
// longer as they were assessed.
const TAKE_BACK = sql('recover:apply')`
  WITH verdicts AS MATERIALIZED (
    SELECT *, 'in_progress' AS held FROM json_to_recordset($2::json) AS j (
      n int, target uuid, epoch int, claim_id uuid, seq int, worker uuid, heartbeats int, status text,
      because text, timed_out boolean, provisional boolean, last_activity_at float8)
  ),
  unchanged AS (
    SELECT t.id, j.n, j.status, j.because, j.timed_out::int AS timeouts, j.provisional, j.worker
      FROM unstuck.target t JOIN verdicts j ON j.target = t.id
     WHERE t.epoch = j.epoch AND t.claim_id = j.claim_id AND t.checkpoint_seq = j.seq AND t.status = j.held
       AND (NOT j.timed_out OR ${ms('t.last_activity_at')} = j.last_activity_at)
       AND (j.timed_out OR EXISTS (
             SELECT FROM unstuck.worker w WHERE w.id = j.worker AND w.heartbeats = j.heartbeats))
       FOR UPDATE OF t SKIP LOCKED
  ),
  taken AS (
    UPDATE unstuck.target t
       SET status = u.status, claim_id = NULL, last_error = u.because,
           -- What was begun goes before everything else in line.
           ready_at = CASE WHEN u.status = 'planned' THEN least(t.ready_at, 'epoch') END,
           finished_at = CASE WHEN u.status IN ('failed', 'parked') THEN clock_timestamp() END,
           errors = t.errors + u.timeouts, crashes = greatest(t.crashes - u.timeouts, 0),
           crashes_alone = greatest(t.crashes_alone - u.timeouts * t.claimed_alone::int, 0)
      FROM unchanged u
     WHERE t.id = u.id
    RETURNING u.n, t.run_id, t.group_name, t.status, t.id, t.epoch, t.claimed_alone, t.crashes, u.provisional, u.worker
  ),
  remembered AS (
    INSERT INTO unstuck.lost_claim (worker_id, target_id, epoch, claimed_alone, parked)
    SELECT worker, id, epoch, claimed_alone, status = 'parked' FROM taken WHERE provisional AND crashes > 0
    ON CONFLICT (worker_id, target_id) DO UPDATE
       SET epoch = excluded.epoch, claimed_alone = excluded.claimed_alone, parked = excluded.parked
  ),
  counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, in_progress, planned, failed, stuck, parked)
    SELECT run_id, group_name, $1, -count(*),
           count(*) FILTER (WHERE status = 'planned'), count(*) FILTER (WHERE status = 'failed'),
           count(*) FILTER (WHERE status = 'stuck'), count(*) FILTER (WHERE status = 'parked')
      FROM taken GROUP BY run_id, group_name ORDER BY run_id, group_name
    ${ADD_ON_CONFLICT}
  )
  SELECT n FROM taken
`
// The old run leaves the live ones before the new one joins them: a source has at most one.
const FAIL_RUN = sql('recover:fail-run')`
  UPDATE unstuck.run SET status = 'failed', error = $2, finished_at = clock_timestamp()
   WHERE id = $1 AND status IN ${LIVE}
  RETURNING id
`
export function recoveryMethods(db: Database): Pick<Store, 'claimsOf' | 'applyVerdicts'> {
  return {
    claimsOf: async (worker, after, limit) => {
      type Row = TargetRow & { worker_heartbeats: number }
      const rows = await db.all<Row>(CLAIMS_OF, [worker, after ?? BEFORE_ALL, limit])
      if (rows.length === 0) return []
      const ids = [...new Set(rows.map((row) => row.run_id))]
      const runs = (await db.all<RunRow>(RUNS_BY_ID, [ids])).map(toRun)
      const byId = new Map(runs.map((run) => [run.id, run]))
      return rows.map((row) => ({
        target: toHeldTarget(row),
        run: byId.get(row.run_id)!,
        workerHeartbeats: row.worker_heartbeats,
      }))
    },

    applyVerdicts: async (verdicts, actor) => {
      const pending = verdicts.flatMap((verdict, n) => toNumbered(verdict, n))
      if (pending.length === 0) return verdicts.map(() => false)
      const applied = await db.transaction('recover', (connection) =>
        applyVerdicts(connection, pending, actor),
      )
      return verdicts.map((_, n) => applied.has(n))
    },
  }
}

/** A judgement that asks for a change, with what the change is. */
type NumberedVerdict = PendingVerdict & { readonly n: number; readonly status: string }

function toNumbered(verdict: PendingVerdict, n: number): NumberedVerdict[] {
  const status = TARGET_STATUS_AFTER[verdict.decision.action]
  return status ? [{ ...verdict, n, status }] : []
}

async function applyVerdicts(
  connection: Connection,
  pending: readonly NumberedVerdict[],
  actor: string,
): Promise<Set<number>> {
  const taken = await connection.writeCounts<{ n: number }>(TAKE_BACK, [
    stripNulJson(pending.map(toRow)),
  ])
  const applied = new Set(taken.map((row) => row.n))
  const entries: NewAuditEntry[] = []
  for (const verdict of pending) {
    if (!applied.has(verdict.n)) continue
    const newRun = await insertRetries(connection, verdict)
    entries.push(toEntry(verdict, newRun, actor))
  }
  await recordAuditEntries(connection, entries)
  return applied
}

/** The run that follows by a verdict of `retry`; null where there is none, or where it has ended in another way meanwhile. */
async function insertRetries(
  connection: Connection,
  { held, decision, newRun }: PendingVerdict,
): Promise<RunId | null> {
  if (decision.action !== 'retry') return null
  const run = held.run.id
  const failed = await connection.all(FAIL_RUN, [run, stripNul(decision.because)])
  if (failed.length === 0) return null
  await queueRetry(connection, { run, newRun, counts: true })
  return newRun
}

function toRow({
  n,
  held,
  status,
  decision,
  liveness,
  isProvisional,
}: NumberedVerdict): Record<string, unknown> {
  const { target, workerHeartbeats } = held
  return {
    n,
    target: target.id,
    epoch: target.epoch,
    claim_id: target.claimId,
    seq: target.seq,
    worker: target.worker,
    heartbeats: workerHeartbeats,
    status,
    because: decision.because,
    timed_out: liveness === 'stalled',
    provisional: isProvisional ?? false,
    last_activity_at: target.lastActivityAt,
  }
}

function toEntry(
  { held, status, decision, evidence }: NumberedVerdict,
  newRun: RunId | null,
  actor: string,
): NewAuditEntry {
  const { run, target } = held
  const { epoch, worker, page } = target
  const entry = { actor, ...decision, evidence, source: run.source, run: run.id, target: target.id }
  const before = { status: target.status, epoch, worker, page }
  return { ...entry, before, after: { status, ...(newRun !== null && { newRun }) } }
}
