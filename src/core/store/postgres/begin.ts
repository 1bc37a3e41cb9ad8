import { HeartbeatOverdueError, UnusableStoreError } from '../../model/errors.ts'
import type { Paused } from '../../model/run.ts'
import type { SourceLock } from '../../model/source-lock.ts'
import { toPaused, toSourceLock, type PausedRow, type SourceLockRow } from '../command-rows.ts'
import {
  begun,
  blockBegin,
  serializePolicy,
  toClaimed,
  type ClaimedRow,
  type LiveSingleRow,
} from '../rows.ts'
import type { BeginRequest, BeginResult, Store } from '../store.ts'
import { CLAIM_COLUMNS, TAKEN_UP } from './claims.ts'
import { ms, sql, type Connection, type Database } from './database.ts'
import { SOURCE_LOCK_COLUMNS } from './source-locks.ts'
import { MAY_CLAIM } from './may-claim.ts'
import { moveRun } from './run-moves.ts'
import { LIVE } from './runs.ts'
import { ADD_ON_CONFLICT } from './counters.ts'

// Its worker cannot be retired between this claim and its commit. With it, the source lock that a worker holds that has
// not ended, and whether the source is paused.
const LOCK_WORKER = sql('begin:worker')`
  WITH me AS MATERIALIZED (SELECT id FROM unstuck.worker WHERE id = $1 AND ${MAY_CLAIM} FOR SHARE),
  other AS (
    SELECT ${SOURCE_LOCK_COLUMNS} FROM unstuck.source_lock g JOIN unstuck.worker w ON w.id = g.worker_id
     WHERE g.source = $2 AND g.worker_id <> $1 AND w.ended_at IS NULL
  )
  SELECT EXISTS (SELECT FROM me) AS may_claim, ${ms('s.paused_at')} AS paused_at, s.paused_because, other.*
    FROM (SELECT) AS always LEFT JOIN other ON true LEFT JOIN unstuck.source s ON s.source = $2
`
const LIVE_RUN = sql('begin:live')`
  SELECT r.id AS run, r.kind, t.id AS target, t.status, t.claim_id
    FROM unstuck.run r LEFT JOIN unstuck.target t ON t.run_id = r.id AND r.kind = 'single'
   WHERE r.source = $1 AND r.status IN ${LIVE}
   LIMIT 1
`
const START = sql('begin:insert')`
  INSERT INTO unstuck.run (id, source, kind, status, policy, planned_at)
  VALUES ($1, $2, 'single', 'queued', $3, clock_timestamp())
  ON CONFLICT DO NOTHING
  RETURNING id
`
const ADD_TARGET = sql('begin:target')`
  WITH counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, planned) VALUES ($3, '', $1, 1)
    ${ADD_ON_CONFLICT}
  )
  INSERT INTO unstuck.target (id, run_id, key) VALUES ($2, $3, $4)
`
// The run first, then its target: as in every move of a run. A run that has ended since it was read is not begun.
// Its owner holds nothing else, so a crash counts as one made alone.
const TAKE = sql('begin:take')`
  WITH live AS MATERIALIZED (
    SELECT id FROM unstuck.run WHERE id = $5 AND status IN ${LIVE} FOR UPDATE
  ),
  claimed AS (
    UPDATE unstuck.target t
       SET status = 'in_progress', epoch = epoch + 1, claim_id = $3, worker_id = $4,
           claimed_at = clock_timestamp(), last_activity_at = clock_timestamp(), ready_at = NULL,
           claimed_alone = true, attempts = attempts + 1, crashes = crashes + 1,
           crashes_alone = crashes_alone + 1
      FROM live
     WHERE t.id = $2 AND t.run_id = live.id AND t.status = 'planned'
    RETURNING ${CLAIM_COLUMNS}
  ),
  woken AS (
    UPDATE unstuck.run
       SET status = 'running', policy = $6, started_at = coalesce(started_at, clock_timestamp()),
           ${TAKEN_UP}
     WHERE id = (SELECT run_id FROM claimed)
  ),
  counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, planned, in_progress)
    SELECT run_id, group_name, $1, -1, 1 FROM claimed
    ${ADD_ON_CONFLICT}
  )
  TABLE claimed
`
const HELD = sql('begin:held')`SELECT ${CLAIM_COLUMNS} FROM unstuck.target t WHERE t.id = $1`

const BEGIN_TRIES = 20

export function beginMethods(db: Database): Pick<Store, 'begin'> {
  return {
    begin: (request) =>
      db.transaction('begin', async (connection) => {
        const asker = await lockWorker(connection, request)
        if (!asker.sourceLock && request.abandonFirst)
          await moveRun(connection, request.abandonFirst)
        // If another process was faster, read again what it created.
        for (let looks = 1; looks <= BEGIN_TRIES; looks++) {
          const begun = await tryToBegin(connection, request, asker)
          if (begun === 'overdue') throw new HeartbeatOverdueError(db.address.where)
          if (begun) return begun
        }
        throw new UnusableStoreError(
          `The runs of ${request.source} change too fast to begin one. Try again.`,
        )
      }),
  }
}

type BeginContext = {
  readonly mayClaim: boolean
  /** Of another worker that has not ended. */
  readonly sourceLock: SourceLock | null
  readonly paused: Paused | null
}

async function lockWorker(
  connection: Connection,
  { worker, source }: BeginRequest,
): Promise<BeginContext> {
  type Row = { may_claim: boolean } & PausedRow & (SourceLockRow | { source: null })
  const [row] = await connection.all<Row>(LOCK_WORKER, [worker, source])
  const sourceLock = row!.source === null ? null : toSourceLock(row!)
  return { mayClaim: row!.may_claim, sourceLock, paused: toPaused(row!) }
}

async function tryToBegin(
  connection: Connection,
  request: BeginRequest,
  { mayClaim, sourceLock, paused }: BeginContext,
): Promise<BeginResult | 'overdue' | null> {
  const { source, worker, claimId } = request
  const policy = serializePolicy(request.policy)
  const [live] = await connection.all<LiveSingleRow>(LIVE_RUN, [source])

  if (live?.status === 'in_progress' && live.claim_id === claimId) {
    const [held] = await connection.all<ClaimedRow>(HELD, [live.target])
    return begun(toClaimed(held!, source))
  }
  const blocked = blockBegin(live, sourceLock, request, paused)
  if (blocked) return blocked
  if (!mayClaim) return 'overdue'
  if (!live) {
    const made = await connection.all(START, [request.run, source, policy])
    if (made.length === 0) return null
    await connection.writeCounts(ADD_TARGET, [request.target, request.run, source])
  }
  const { run, target } = live ?? request
  const [taken] = await connection.writeCounts<ClaimedRow>(TAKE, [
    target,
    claimId,
    worker,
    run,
    policy,
  ])
  return taken ? begun(toClaimed(taken, source)) : null
}
