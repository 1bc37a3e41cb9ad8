import { HeartbeatOverdue } from '../../model/errors.ts'
import { keepPolicy } from '../rows.ts'
import type { BeginRequest, Begun, Store } from '../store.ts'
import { HELD, isTaken, TAKE, toClaimed, WAKE, type ClaimedRow } from './claims.ts'
import { sql, type Connection, type Database } from './database.ts'
import { heldByAnother } from './source-locks.ts'
import { mayClaim } from './may-claim.ts'
import { moveRun } from './run-moves.ts'
import { insertTargets, LIVE, SET_POLICY } from './runs.ts'

const LIVE_SINGLE = sql(
  'begin:live',
  /* sql */ `
  SELECT r.id AS run, r.kind, t.id AS target, t.status, t.claim_id
    FROM run r LEFT JOIN target t ON t.run_id = r.id AND r.kind = 'single'
   WHERE r.source = :source AND r.status IN ${LIVE}
`,
)
const BEGIN = sql(
  'begin:insert',
  /* sql */ `
  INSERT INTO run (id, source, kind, status, policy, created_at, planned_at)
  VALUES (:run, :source, 'single', 'queued', :policy, :now, :now)
`,
)

export function beginVerbs(db: Database): Pick<Store, 'begin'> {
  return { begin: (request) => db.write('begin', (tx) => begin(tx, request, db.where)) }
}

function begin(tx: Connection, request: BeginRequest, where: string): Begun {
  const { source, worker, claimId } = request
  const now = tx.now()
  const guard = heldByAnother(tx, source, worker)
  if (!guard && request.clean) moveRun(tx, request.clean)
  const live = tx.get<{
    run: string
    kind: string
    target: string | null
    status: string | null
    claim_id: string | null
  }>(LIVE_SINGLE, { source })

  if (live && live.status === 'in_progress' && live.claim_id === claimId) {
    const [row] = tx.all<ClaimedRow>(HELD, { worker, claimIds: JSON.stringify([claimId]) })
    return begun(row!, source)
  }
  if (guard) return { claimed: null, guard }
  const { only } = request
  if (only !== undefined && live?.run !== only)
    return { claimed: null, inTheWay: live?.run ?? only }
  if (live && (live.kind !== 'single' || live.status !== 'planned')) {
    return { claimed: null, inTheWay: live.run }
  }
  if (!mayClaim(tx, worker)) throw new HeartbeatOverdue(where)
  const run = live?.run ?? request.run
  if (!live) {
    tx.run(BEGIN, { run, source, policy: keepPolicy(request.policy), now })
    insertTargets(tx, run, [{ id: request.target, key: source }])
  } else tx.run(SET_POLICY, { run, policy: keepPolicy(request.policy) })
  const id = live?.target ?? request.target
  const row = tx.get<ClaimedRow>(TAKE, { id, claimId, worker, now, alone: 1 })!
  if (!isTaken(tx, row, now)) return { claimed: null, inTheWay: run }
  tx.run(WAKE, { run, now })
  return begun(row, source)
}

function begun(row: ClaimedRow, source: string): Begun {
  return { claimed: toClaimed(row, source), resumed: row.epoch > 1 }
}
