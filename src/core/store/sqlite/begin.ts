import { toPaused, type PausedRow } from '../command-rows.ts'
import { HeartbeatOverdueError } from '../../model/errors.ts'
import { begun, blockBegin, serializePolicy, type LiveSingleRow } from '../rows.ts'
import type { BeginRequest, BeginResult, Store } from '../store.ts'
import {
  HELD,
  countClaim,
  CLAIM_TARGET,
  readClaimed,
  MARK_RUNNING,
  type SqliteClaimedRow,
} from './claims.ts'
import { sql, type Connection, type Database } from './database.ts'
import { lockedByAnother } from './source-locks.ts'
import { mayClaim } from './may-claim.ts'
import { moveRun } from './run-moves.ts'
import { insertTargets, LIVE, SET_POLICY } from './runs.ts'

const LIVE_SINGLE = sql('begin:live')`
  SELECT r.id AS run, r.kind, t.id AS target, t.status, t.claim_id
    FROM run r LEFT JOIN target t ON t.run_id = r.id AND r.kind = 'single'
   WHERE r.source = :source AND r.status IN ${LIVE}
`
const PAUSED = sql('begin:paused')`
  SELECT paused_at, paused_because FROM source WHERE source = :source AND paused_at IS NOT NULL
`
const BEGIN = sql('begin:insert')`
  INSERT INTO run (id, source, kind, status, policy, created_at, planned_at)
  VALUES (:run, :source, 'single', 'queued', :policy, :now, :now)
`

export function beginMethods(db: Database): Pick<Store, 'begin'> {
  return { begin: (request) => db.write('begin', (tx) => begin(tx, request, db.location)) }
}

function begin(tx: Connection, request: BeginRequest, where: string): BeginResult {
  const { source, worker, claimId } = request
  const now = tx.now()
  const sourceLock = lockedByAnother(tx, source, worker)
  if (!sourceLock && request.abandonFirst) moveRun(tx, request.abandonFirst)
  const live = tx.get<LiveSingleRow>(LIVE_SINGLE, { source })

  if (live && live.status === 'in_progress' && live.claim_id === claimId) {
    const [row] = tx.all<SqliteClaimedRow>(HELD, { worker, claimIds: JSON.stringify([claimId]) })
    return begun(readClaimed(row!, source))
  }
  const paused = tx.get<PausedRow>(PAUSED, { source })
  const blocked = blockBegin(live, sourceLock, request, paused ? toPaused(paused) : null)
  if (blocked) return blocked
  if (!mayClaim(tx, worker)) throw new HeartbeatOverdueError(where)
  const run = live?.run ?? request.run
  if (!live) {
    tx.run(BEGIN, { run, source, policy: serializePolicy(request.policy), now })
    insertTargets(tx, run, [{ id: request.target, key: source }])
  } else tx.run(SET_POLICY, { run, policy: serializePolicy(request.policy) })
  const id = live?.target ?? request.target
  const row = tx.get<SqliteClaimedRow>(CLAIM_TARGET, { id, claimId, worker, now, claimedAlone: 1 })!
  if (!countClaim(tx, row, now)) return { claimed: null, blockingRun: run }
  tx.run(MARK_RUNNING, { run, now })
  return begun(readClaimed(row, source))
}
