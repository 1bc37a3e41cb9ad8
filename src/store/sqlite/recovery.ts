import type { Policy } from '../../model/policy.ts'
import { TARGET_AFTER } from '../../model/verdict.ts'
import { toAuditEntry, toHeldTarget, type AuditRow } from '../rows.ts'
import type { Held, Judgement, Store } from '../store.ts'
import { sql, type Connection, type Database } from './database.ts'
import { insertRetry, insertTargets, readRun, RUN, type SqliteRunRow } from './runs.ts'
import { book } from './tally.ts'
import { readJson, type SqliteTargetRow } from './lists.ts'

const HELD_BY = sql(
  'recover:held',
  /* sql */ `
  SELECT t.*, w.beats AS worker_beats FROM target t JOIN worker w ON w.id = t.worker_id
   WHERE t.worker_id = :worker AND t.status = 'in_progress' AND t.id > :after
   ORDER BY t.id LIMIT :limit
`,
)
// Recovery is fenced too: it acts only on what it judged, and only while the worker's silence lasts. What was begun goes
// before everything else in line.
const TAKE_BACK = sql(
  'recover:take-back',
  /* sql */ `
  UPDATE target SET status = :status, claim_id = NULL, last_error = :because,
                    ready_at = CASE WHEN :status = 'planned' THEN 0 END,
                    finished_at = CASE WHEN :status IN ('failed', 'parked') THEN :now END
   WHERE id = :target AND epoch = :epoch AND claim_id = :claimId AND status = 'in_progress'
     AND seq = :seq
     AND EXISTS (SELECT 1 FROM worker WHERE id = :worker AND beats = :beats)
  RETURNING run_id, grp
`,
)
const FAIL_RUN = sql(
  'recover:fail-run',
  `UPDATE run SET status = 'failed', error = :because, finished_at = :now WHERE id = :run`,
)
const PLANNED = sql('recover:planned', `UPDATE run SET planned_at = :now WHERE id = :run`)
const AUDIT = sql(
  'recover:audit',
  /* sql */ `
  INSERT INTO audit (at, actor, action, source, run_id, target_id, because, evidence, before, after)
  VALUES (:now, :actor, :action, :source, :run, :target, :because, :evidence, :before, :after)
`,
)
const AUDIT_LIST = sql(
  'audit',
  /* sql */ `
  SELECT * FROM audit WHERE id > :after AND (:run IS NULL OR run_id = :run) ORDER BY id LIMIT :limit
`,
)

export function recoveryVerbs(db: Database): Pick<Store, 'heldBy' | 'applyJudgements' | 'audit'> {
  return {
    heldBy: async (worker, after, limit) =>
      db.read((tx) => {
        type Row = SqliteTargetRow & { worker_beats: number }
        const rows = tx.all<Row>(HELD_BY, { worker, after: after ?? '', limit })
        const runs = new Map<string, Held['run']>()
        for (const { run_id: id } of rows) {
          if (!runs.has(id)) runs.set(id, readRun(tx.get<SqliteRunRow>(RUN, { id })!))
        }
        return rows.map((row) => ({
          target: toHeldTarget({ ...row, cursor: readJson(row.cursor) }),
          run: runs.get(row.run_id)!,
          workerBeats: row.worker_beats,
        }))
      }),

    applyJudgements: (judgements, actor) =>
      db.write('recover', (tx) => judgements.map((judgement) => apply(tx, judgement, actor))),

    audit: async ({ run, after = 0, limit }) =>
      db.read((tx) =>
        tx.all<AuditRow>(AUDIT_LIST, { run: run ?? null, after, limit }).map((row) =>
          toAuditEntry({
            ...row,
            evidence: readJson(row.evidence as string),
            before: readJson(row.before as string),
            after: readJson(row.after as string),
          }),
        ),
      ),
  }
}

function apply(
  tx: Connection,
  { held, decision, evidence, newRun }: Judgement,
  actor: string,
): boolean {
  const { target, run, workerBeats } = held
  const { action, because } = decision
  const status = TARGET_AFTER[action]
  if (!status) return false
  const now = Date.now()
  const taken = tx.get<{ run_id: string; grp: string }>(TAKE_BACK, {
    target: target.id,
    epoch: target.epoch,
    claimId: target.claimId,
    seq: target.seq,
    worker: target.worker,
    beats: workerBeats,
    status,
    because,
    now,
  })
  if (!taken) return false

  book(tx, taken.run_id, taken.grp, { in_progress: -1, [status]: 1 }, now)
  if (action === 'retry') {
    tx.run(FAIL_RUN, { run: run.id, because, now })
    retry(tx, newRun, run, { key: target.key, url: target.url }, now)
  }
  tx.run(AUDIT, {
    now,
    actor,
    action,
    because,
    source: run.source,
    run: run.id,
    target: target.id,
    evidence: JSON.stringify(evidence),
    before: JSON.stringify({
      status: target.status,
      epoch: target.epoch,
      worker: target.worker,
      page: target.page,
    }),
    after: JSON.stringify({ status, ...(action === 'retry' && { newRun }) }),
  })
  return true
}

function retry(
  tx: Connection,
  id: string,
  of: { id: string; source: string; policy: Policy; retries: number },
  target: { key: string; url: string | null },
  now: number,
): void {
  insertRetry(tx, { id, of })
  insertTargets(tx, id, [
    target.url === null ? { key: target.key } : { key: target.key, url: target.url },
  ])
  tx.run(PLANNED, { run: id, now })
}
