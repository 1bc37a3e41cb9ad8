import { unknownWorker } from '../../model/errors.ts'
import type { Policy } from '../../model/policy.ts'
import type { Presence, Worker } from '../../model/worker.ts'
import { bootId, processState, uptimeMs } from '../../host/identity.ts'
import { toPaused, type PausedRow } from '../command-rows.ts'
import {
  toHolding,
  toObservation,
  toWorker,
  type HoldingRow,
  type WorkerRow,
} from '../worker-rows.ts'
import type { HeartbeatResult, Store, WorkerObservation } from '../store.ts'
import { endClaim, RELEASE } from './claim-ends.ts'
import { sql, type Connection, type Database } from './database.ts'
import { isTooOld } from './migrate.ts'
import { probePresence, removeLock } from './presence.ts'
import { LIVE } from './runs.ts'
import { watchWal } from './wal.ts'

const REGISTER = sql('worker:register')`
  INSERT INTO worker (id, source, host, pid, start_ticks, boot_id, pid_namespace, presence, version,
                      heartbeat_ms, lease_ms, started_at, last_heartbeat_at, heartbeat_uptime)
  VALUES (:id, :source, :host, :pid, :startTicks, :bootId, :pidNamespace, :presence, :version,
          :heartbeatMs, :leaseMs, :now, :now, :uptime)
  ON CONFLICT (id) DO NOTHING
`
const HEARTBEAT = sql('heartbeat')`
  UPDATE worker SET last_heartbeat_at = :now, heartbeat_uptime = :uptime, heartbeats = heartbeats + 1,
                    loop_lag_ms = :loopLagMs, stats = coalesce(:stats, stats), ended_at = NULL
   WHERE id = :worker
  RETURNING lease_ms,
            (SELECT paused_at FROM source s WHERE s.source = worker.source) AS paused_at,
            (SELECT paused_because FROM source s WHERE s.source = worker.source) AS paused_because
`
/** Claims in the worker's name that it has not named for a whole lease: it does not know of them. */
const UNNAMED = sql('heartbeat:unnamed')`
  SELECT id, epoch, claim_id FROM target
   WHERE worker_id = :worker AND status = 'in_progress' AND claimed_at < :before
     AND claim_id NOT IN (SELECT value FROM json_each(:claimIds))
`
const STILL_HELD = sql('heartbeat:held')`
  SELECT t.claim_id, r.status NOT IN ${LIVE} AS cancelled
    FROM target t JOIN run r ON r.id = t.run_id
   WHERE t.worker_id = :worker AND t.status = 'in_progress'
     AND t.claim_id IN (SELECT value FROM json_each(:claimIds))
`
/** A worker that holds targets is not marked as ended: they would never be recovered. */
const HOLDS = sql('worker:holds')`
  SELECT 1 FROM target t JOIN run r ON r.id = t.run_id
   WHERE t.worker_id = :worker AND t.status = 'in_progress' AND r.status IN ${LIVE}
  UNION ALL
  SELECT 1 FROM source_lock WHERE worker_id = :worker
   LIMIT 1
`
const LOST = sql('heartbeat:lost')`
  SELECT t.id AS target, t.run_id AS run, l.claimed_alone, l.parked AND t.status = 'parked' AS unpark
    FROM lost_claim l JOIN target t ON t.id = l.target_id
   WHERE l.worker_id = :worker AND l.epoch > t.crashes_since_epoch
`
const FORGET = sql('heartbeat:forget')`DELETE FROM lost_claim WHERE worker_id = :worker`
const STRIKE_OFF = sql('heartbeat:strike-off')`
  UPDATE target SET crashes = max(crashes - 1, 0), crashes_alone = max(crashes_alone - :claimedAlone, 0)
   WHERE id = :target
`
const RETIRE = sql('worker:retire')`
  UPDATE worker SET ended_at = :now WHERE id = :worker AND ended_at IS NULL
`
const DROP_PLANNING = sql('worker:planning')`
  UPDATE run SET planning_worker_id = NULL WHERE planning_worker_id = :worker AND status IN ${LIVE}
`
const WORKER = sql('worker')`SELECT * FROM worker WHERE id = :id`
const WORKERS = sql('workers')`SELECT * FROM worker WHERE ended_at IS NULL ORDER BY id`
const HOLDINGS = sql('workers:holdings')`
  SELECT t.worker_id, t.run_id, t.group_name, r.policy, count(*) AS targets, min(t.last_activity_at) AS last_activity_at
    FROM worker w
   CROSS JOIN target t ON t.worker_id = w.id AND t.status = 'in_progress'
    JOIN run r ON r.id = t.run_id
   WHERE w.ended_at IS NULL
   GROUP BY t.worker_id, t.run_id, t.group_name
`

const LEADER = sql('leader')`SELECT worker_id, boot_id, until_uptime FROM leader WHERE role = :role`
const TAKE_LEADERSHIP = sql('leader:take')`
  INSERT INTO leader (role, worker_id, boot_id, until_uptime) VALUES (:role, :worker, :boot, :until)
  ON CONFLICT (role) DO UPDATE SET
    worker_id = excluded.worker_id, boot_id = excluded.boot_id, until_uptime = excluded.until_uptime
  WHERE leader.worker_id IS :seenWorker AND leader.until_uptime IS :seenUntil
`

export function workerMethods(db: Database, lockFolder: string) {
  const find = (id: string): SqliteWorkerRow | undefined =>
    db.read((tx) => tx.get<SqliteWorkerRow>(WORKER, { id }))

  const walWarning = watchWal(db)

  return {
    registerWorker: (worker) =>
      db.write('worker:register', (tx) => {
        const { process, presence, id, source, version, heartbeatMs, leaseMs } = worker
        tx.run(REGISTER, {
          id,
          source,
          version,
          heartbeatMs,
          leaseMs,
          ...process,
          presence: JSON.stringify(presence),
          now: tx.now(),
          uptime: uptimeMs(),
        })
      }),

    heartbeat: async ({ worker, claimIds, loopLagMs, stats }) => {
      const answer = await db.write('heartbeat', (tx) => {
        db.clock.adjust(tx)
        const now = tx.now()
        const row = tx.get<{ lease_ms: number } & PausedRow>(HEARTBEAT, {
          worker,
          loopLagMs,
          stats: stats === undefined ? null : JSON.stringify(stats),
          now,
          uptime: uptimeMs(),
        })
        if (!row) throw unknownWorker(db.location)
        const named = JSON.stringify(claimIds)
        releaseUnnamed(tx, worker, named, now - row.lease_ms)
        const unpark = strikeOffLost(tx, worker)
        const held = tx.all<{ claim_id: string; cancelled: number }>(STILL_HELD, {
          worker,
          claimIds: named,
        })
        return {
          held: held.map((claim) => claim.claim_id),
          cancelled: held.filter((claim) => claim.cancelled).map((claim) => claim.claim_id),
          unpark,
          serverStartedAt: null,
          now,
          paused: toPaused(row),
          isOutdated: isTooOld(tx),
        } satisfies HeartbeatResult
      })
      const warning = walWarning()
      return warning === null ? answer : { ...answer, warning }
    },

    retireWorker: async (worker) => {
      const ended = await db.write('worker:retire', (tx) => {
        tx.run(DROP_PLANNING, { worker })
        tx.run(FORGET, { worker })
        if (tx.get(HOLDS, { worker })) return false
        tx.run(RETIRE, { worker, now: tx.now() })
        return true
      })
      if (ended) removeLock(lockFolder, worker)
    },

    worker: async (id) => {
      const row = find(id)
      return row ? readWorker(row) : null
    },

    observations: async () =>
      db
        .read((tx) => tx.all<SqliteWorkerRow>(WORKERS))
        .map((row) => observe(row, lockFolder, db.now())),

    holdings: async () =>
      db
        .read((tx) => tx.many<Omit<HoldingRow, 'policy'> & { policy: string }>(HOLDINGS))
        .map((row) => toHolding({ ...row, policy: JSON.parse(row.policy) as Partial<Policy> })),

    acquireLeadership: async (worker, forMs, role = 'sweep') => {
      const leader = db.read((tx) =>
        tx.get<{ worker_id: string; boot_id: string | null; until_uptime: number }>(LEADER, {
          role,
        }),
      )
      const now = uptimeMs()
      const running =
        leader !== undefined && leader.boot_id === bootId() && leader.until_uptime > now
      if (running && leader.worker_id === worker && leader.until_uptime - now > forMs / 2)
        return true
      // A process with a shorter interval takes over from one with a longer interval.
      const isFree = (left: number): boolean =>
        left > forMs || isGone(find(leader!.worker_id), lockFolder)
      if (running && leader.worker_id !== worker && !isFree(leader.until_uptime - now)) return false
      return db.write('leader', (tx) => {
        const params = { role, worker, boot: bootId(), until: now + forMs }
        const seen = {
          seenWorker: leader?.worker_id ?? null,
          seenUntil: leader?.until_uptime ?? null,
        }
        return tx.run(TAKE_LEADERSHIP, { ...params, ...seen }) === 1
      })
    },
  } satisfies Partial<Store>
}

type SqliteWorkerRow = Omit<WorkerRow, 'presence'> & { presence: string; heartbeat_uptime: number }

function readWorker(row: SqliteWorkerRow): Worker {
  return toWorker({ ...row, presence: JSON.parse(row.presence) as Presence })
}

function observe(row: SqliteWorkerRow, lockFolder: string, now: number): WorkerObservation {
  const worker = readWorker(row)
  const sameBoot = worker.process.bootId === bootId()
  const byUptime = uptimeMs() - row.heartbeat_uptime
  const ageMs = sameBoot && byUptime >= 0 ? byUptime : Math.max(0, now - worker.lastHeartbeatAt)
  const presence = probePresence(lockFolder, worker.presence, worker.process)
  return toObservation(worker, presence, ageMs)
}

function isGone(row: SqliteWorkerRow | undefined, lockFolder: string): boolean {
  if (!row || row.ended_at !== null) return true
  const { process } = readWorker(row)
  return (
    processState(process) === 'gone' ||
    probePresence(lockFolder, readWorker(row).presence, process) === 'free'
  )
}

/** Strikes off crashes that were none, as this heartbeat shows. Returns the targets that were parked for one. */
function strikeOffLost(tx: Connection, worker: string): HeartbeatResult['unpark'] {
  type Row = { target: string; run: string; claimed_alone: number; unpark: number }
  const lost = tx.all<Row>(LOST, { worker })
  for (const { target, claimed_alone: claimedAlone } of lost) {
    tx.run(STRIKE_OFF, { target, claimedAlone })
  }
  tx.run(FORGET, { worker })
  return lost.filter(({ unpark }) => unpark).map(({ run, target }) => ({ run, target }))
}

function releaseUnnamed(tx: Connection, worker: string, claimIds: string, before: number): void {
  type Row = { id: string; epoch: number; claim_id: string }
  for (const row of tx.all<Row>(UNNAMED, { worker, claimIds, before })) {
    const claim = { target: row.id, epoch: row.epoch, claimId: row.claim_id, worker }
    endClaim(tx, claim, RELEASE, 'planned', { readyAt: null })
  }
}
