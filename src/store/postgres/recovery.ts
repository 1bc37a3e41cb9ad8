import { newId } from '../../model/id.ts'
import { TARGET_AFTER } from '../../model/verdict.ts'
import {
  toAuditEntry,
  toHeldTarget,
  toRun,
  type AuditRow,
  type RunRow,
  type TargetRow,
} from '../rows.ts'
import type { Judgement, Store } from '../store.ts'
import { ms, sql, type Connection, type Database } from './database.ts'
import { BEFORE_ALL, TARGET_COLUMNS } from './lists.ts'
import { LIVE, RUNS_BY_ID } from './runs.ts'
import { ADD_UP } from './tally.ts'

const HELD_BY = sql(
  'recover:held',
  /* sql */ `
  SELECT ${TARGET_COLUMNS}, w.beats AS worker_beats
    FROM unstuck.target t JOIN unstuck.worker w ON w.id = t.worker_id
   WHERE t.worker_id = $1 AND t.status = 'in_progress' AND t.id > $2
   ORDER BY t.id LIMIT $3
`,
)
// Recovery is fenced too: it acts only on what it judged, and only while the worker's silence lasts. The crash that was
// counted when the claim was made stays counted. Rows that somebody is just changing are no longer what was judged.
const TAKE_BACK = sql(
  'recover:apply',
  /* sql */ `
  WITH judged AS MATERIALIZED (
    SELECT *, 'in_progress' AS held FROM json_to_recordset($2::json) AS j (
      n int, target uuid, epoch int, claim_id uuid, seq int, worker uuid, beats int, status text,
      because text)
  ),
  unchanged AS (
    SELECT t.id, j.n, j.status, j.because
      FROM unstuck.target t JOIN judged j ON j.target = t.id
     WHERE t.epoch = j.epoch AND t.claim_id = j.claim_id AND t.seq = j.seq AND t.status = j.held
       AND EXISTS (SELECT FROM unstuck.worker w WHERE w.id = j.worker AND w.beats = j.beats)
       FOR UPDATE OF t SKIP LOCKED
  ),
  taken AS (
    UPDATE unstuck.target t
       SET status = u.status, claim_id = NULL, last_error = u.because,
           -- What was begun goes before everything else in line.
           ready_at = CASE WHEN u.status = 'planned' THEN '-infinity'::timestamptz END,
           finished_at = CASE WHEN u.status IN ('failed', 'parked') THEN clock_timestamp() END
      FROM unchanged u
     WHERE t.id = u.id
    RETURNING u.n, t.run_id, t.grp, t.status
  ),
  booked AS (
    INSERT INTO unstuck.tally (run_id, grp, writer, in_progress, planned, failed, stuck, parked)
    SELECT run_id, grp, $1, -count(*),
           count(*) FILTER (WHERE status = 'planned'), count(*) FILTER (WHERE status = 'failed'),
           count(*) FILTER (WHERE status = 'stuck'), count(*) FILTER (WHERE status = 'parked')
      FROM taken GROUP BY run_id, grp ORDER BY run_id, grp
    ${ADD_UP}
  )
  SELECT n FROM taken
`,
)
// The old run leaves the live ones before the new one joins them: a source has at most one.
const FAIL_RUN = sql(
  'recover:fail-run',
  /* sql */ `
  UPDATE unstuck.run SET status = 'failed', error = $2, finished_at = clock_timestamp()
   WHERE id = $1 AND status IN ${LIVE}
`,
)
const RETRY = sql(
  'recover:retry',
  /* sql */ `
  WITH queued AS (
    INSERT INTO unstuck.run (id, source, kind, status, policy, planned_at, retries, retry_of)
    SELECT $2, source, kind, 'queued', policy, clock_timestamp(), retries + 1, id
      FROM unstuck.run WHERE id = $3
    RETURNING id
  ),
  added AS (
    INSERT INTO unstuck.target (id, run_id, key, grp, url)
    SELECT $4, queued.id, t.key, t.grp, t.url FROM queued, unstuck.target t WHERE t.id = $5
    RETURNING run_id, grp
  )
  INSERT INTO unstuck.tally (run_id, grp, writer, planned) SELECT run_id, grp, $1, 1 FROM added
  ${ADD_UP}
`,
)
const AUDIT = sql(
  'recover:audit',
  /* sql */ `
  INSERT INTO unstuck.audit (actor, action, source, run_id, target_id, because, evidence, before, after)
  SELECT $1, action, source, run_id, target_id, because, evidence, before, after
    FROM json_to_recordset($2::json) AS a (
      n int, action text, source text, run_id uuid, target_id uuid, because text, evidence jsonb,
      before jsonb, after jsonb)
   ORDER BY n
`,
)
const AUDIT_LIST = sql(
  'audit',
  /* sql */ `
  SELECT id::float8 AS id, ${ms('at')} AS at, actor, action, source, run_id, target_id, because, evidence,
         before, after
    FROM unstuck.audit WHERE id > $1 AND ($2::uuid IS NULL OR run_id = $2) ORDER BY id LIMIT $3
`,
  'anew',
)

type RecoveryVerbs = Pick<Store, 'heldBy' | 'applyJudgements' | 'audit'>

export function recoveryVerbs(db: Database): RecoveryVerbs {
  return {
    heldBy: async (worker, after, limit) => {
      type Row = TargetRow & { worker_beats: number }
      const rows = await db.all<Row>(HELD_BY, [worker, after ?? BEFORE_ALL, limit])
      if (rows.length === 0) return []
      const ids = [...new Set(rows.map((row) => row.run_id))]
      const runs = (await db.all<RunRow>(RUNS_BY_ID, [ids])).map(toRun)
      const byId = new Map(runs.map((run) => [run.id, run]))
      return rows.map((row) => ({
        target: toHeldTarget(row),
        run: byId.get(row.run_id)!,
        workerBeats: row.worker_beats,
      }))
    },

    applyJudgements: async (judgements, actor) => {
      const pending = judgements.flatMap((judgement, n) => toPending(judgement, n))
      if (pending.length === 0) return judgements.map(() => false)
      const applied = await db.transaction('recover', (connection) =>
        apply(connection, pending, actor),
      )
      return judgements.map((_, n) => applied.has(n))
    },

    audit: async ({ run = null, after = 0, limit }) =>
      (await db.all<AuditRow>(AUDIT_LIST, [after, run, limit])).map(toAuditEntry),
  }
}

/** A judgement that asks for a change, with what the change is. */
type Pending = Judgement & { readonly n: number; readonly status: string }

function toPending(judgement: Judgement, n: number): Pending[] {
  const status = TARGET_AFTER[judgement.decision.action]
  return status ? [{ ...judgement, n, status }] : []
}

async function apply(
  connection: Connection,
  pending: readonly Pending[],
  actor: string,
): Promise<Set<number>> {
  const taken = await connection.book<{ n: number }>(TAKE_BACK, [
    JSON.stringify(pending.map(toRow)),
  ])
  const applied = new Set(taken.map((row) => row.n))
  const done = pending.filter(({ n }) => applied.has(n))
  for (const { held, decision, newRun } of done) {
    if (decision.action !== 'retry') continue
    await connection.all(FAIL_RUN, [held.run.id, decision.because])
    await connection.book(RETRY, [newRun, held.run.id, newId(), held.target.id])
  }
  if (done.length > 0) await connection.all(AUDIT, [actor, JSON.stringify(done.map(toAudit))])
  return applied
}

function toRow({ n, held, status, decision }: Pending): Record<string, unknown> {
  const { target, workerBeats } = held
  return {
    n,
    target: target.id,
    epoch: target.epoch,
    claim_id: target.claimId,
    seq: target.seq,
    worker: target.worker,
    beats: workerBeats,
    status,
    because: decision.because,
  }
}

function toAudit({
  n,
  held,
  status,
  decision,
  evidence,
  newRun,
}: Pending): Record<string, unknown> {
  const { run, target } = held
  const { epoch, worker, page } = target
  return {
    n,
    action: decision.action,
    source: run.source,
    run_id: run.id,
    target_id: target.id,
    because: decision.because,
    evidence,
    before: { status: target.status, epoch, worker, page },
    after: { status, ...(decision.action === 'retry' && { newRun }) },
  }
}
