import { unknownWorker } from '../../model/errors.ts'
import { toPaused, type PausedRow } from '../command-rows.ts'
import {
  toHolding,
  toObservation,
  toWorker,
  type HoldingRow,
  type WorkerRow,
} from '../worker-rows.ts'
import type { HeartbeatResult, Store, WorkerObservation } from '../store.ts'
import { ms, sql, type Database } from './database.ts'
import { SCHEMA_VERSION } from './migrate.ts'
import { LIVE } from './runs.ts'
import { ADD_ON_CONFLICT, foldCounters } from './counters.ts'

const WORKER_COLUMNS = /* sql */ `
  w.id, w.source, w.host, w.pid, w.start_ticks::float8 AS start_ticks, w.boot_id, w.pid_namespace,
  w.presence, w.version, w.heartbeat_ms, w.lease_ms, w.heartbeats, w.loop_lag_ms,
  ${ms('w.started_at')} AS started_at, ${ms('w.last_heartbeat_at')} AS last_heartbeat_at,
  ${ms('w.ended_at')} AS ended_at
`
const REGISTER = sql('worker:register')`
  INSERT INTO unstuck.worker (id, source, host, pid, start_ticks, boot_id, pid_namespace, presence, version,
                              heartbeat_ms, lease_ms)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
  ON CONFLICT (id) DO NOTHING
`
// $1 writer, $2 worker, $3 loop lag, $4 the claims it names, $5 what it has measured. Claims in its name that it has not named for a whole
// lease are released unchanged: the reply to their claim got lost.
const HEARTBEAT = sql('heartbeat')`
  WITH me AS (
    UPDATE unstuck.worker
       SET last_heartbeat_at = clock_timestamp(), heartbeats = heartbeats + 1, loop_lag_ms = $3, stats = coalesce($5, stats),
           ended_at = NULL
     WHERE id = $2
    RETURNING lease_ms, source
  ),
  let_go AS (
    UPDATE unstuck.target t
       SET status = 'planned', ready_at = least(t.ready_at, 'epoch'), attempts = greatest(t.attempts - 1, 0),
           crashes = greatest(t.crashes - 1, 0),
           crashes_alone = greatest(t.crashes_alone - t.claimed_alone::int, 0)
      FROM me
     WHERE t.worker_id = $2 AND t.status = 'in_progress' AND t.claim_id <> ALL ($4::uuid[])
       AND t.claimed_at < clock_timestamp() - me.lease_ms * interval '1 millisecond'
    RETURNING t.run_id, t.group_name
  ),
  counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, in_progress, planned)
    SELECT run_id, group_name, $1, -count(*), count(*) FROM let_go GROUP BY run_id, group_name ORDER BY run_id, group_name
    ${ADD_ON_CONFLICT}
  ),
  -- Crashes that were none, as this heartbeat shows. Where a target is locked, the next heartbeat strikes it off.
  lost AS MATERIALIZED (
    SELECT t.id, t.run_id, l.epoch, l.claimed_alone,
           l.parked AND t.status = 'parked' AND l.epoch > t.crashes_since_epoch AS unpark
      FROM unstuck.lost_claim l JOIN unstuck.target t ON t.id = l.target_id
     WHERE l.worker_id = $2 FOR UPDATE OF t SKIP LOCKED
  ),
  forgotten AS (
    DELETE FROM unstuck.lost_claim l USING lost WHERE l.worker_id = $2 AND l.target_id = lost.id
  ),
  struck_off AS (
    UPDATE unstuck.target t
       SET crashes = greatest(t.crashes - 1, 0),
           crashes_alone = greatest(t.crashes_alone - lost.claimed_alone::int, 0)
      FROM lost
     WHERE t.id = lost.id AND lost.epoch > t.crashes_since_epoch
  ),
  held AS (
    SELECT t.claim_id::text, r.status NOT IN ${LIVE} AS cancelled
      FROM unstuck.target t JOIN unstuck.run r ON r.id = t.run_id
     WHERE t.worker_id = $2 AND t.status = 'in_progress' AND t.claim_id = ANY ($4::uuid[])
  )
  SELECT EXISTS (SELECT FROM me) AS known,
         (SELECT ${ms('paused_at')} FROM unstuck.source WHERE source = (SELECT source FROM me)) AS paused_at,
         (SELECT paused_because FROM unstuck.source WHERE source = (SELECT source FROM me)) AS paused_because,
         ARRAY (SELECT claim_id FROM held) AS held,
         ARRAY (SELECT claim_id FROM held WHERE cancelled) AS cancelled,
         (SELECT json_agg(json_build_object('run', run_id, 'target', id)) FROM lost WHERE unpark) AS unpark,
         ${ms('pg_postmaster_start_time()')} AS server_started_at,
         ${ms('clock_timestamp()')} AS now,
         (SELECT max(min_program_version) FROM unstuck.migration) AS min_program_version
`
const LOCK_WORKER = sql('worker:lock')`SELECT FROM unstuck.worker WHERE id = $1 FOR UPDATE`
const RETIRE = sql('worker:retire')`
  WITH planning AS (
    UPDATE unstuck.run SET planning_worker_id = NULL WHERE planning_worker_id = $1 AND status IN ${LIVE}
  ),
  forgotten AS (
    DELETE FROM unstuck.lost_claim WHERE worker_id = $1
  )
  UPDATE unstuck.worker SET ended_at = coalesce(ended_at, clock_timestamp())
   WHERE id = $1
     AND NOT EXISTS (SELECT FROM unstuck.source_lock g WHERE g.worker_id = $1)
     AND NOT EXISTS (
       SELECT FROM unstuck.target t JOIN unstuck.run r ON r.id = t.run_id
        WHERE t.worker_id = $1 AND t.status = 'in_progress' AND r.status IN ${LIVE})
`
const WORKER = sql('worker')`SELECT ${WORKER_COLUMNS} FROM unstuck.worker w WHERE w.id = $1`
const WORKERS = sql('workers')`
  SELECT ${WORKER_COLUMNS}, l.pid IS NOT NULL AS is_locked,
         ${ms('clock_timestamp() - w.last_heartbeat_at')} AS beat_age_ms
    FROM unstuck.worker w
    LEFT JOIN pg_locks l
      ON l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND (l.classid::bigint << 32) + l.objid::bigint = (w.presence ->> 'key')::bigint
   WHERE w.ended_at IS NULL
   ORDER BY w.id
`
const HOLDINGS = sql('workers:holdings')`
  SELECT t.worker_id, t.run_id, t.group_name, r.policy, t.targets, ${ms('t.last_activity_at')} AS last_activity_at
    FROM unstuck.worker w
   CROSS JOIN LATERAL (
     SELECT worker_id, run_id, group_name, count(*)::int AS targets, min(last_activity_at) AS last_activity_at
       FROM unstuck.target WHERE worker_id = w.id AND status = 'in_progress'
      GROUP BY worker_id, run_id, group_name
   ) AS t
    JOIN unstuck.run r ON r.id = t.run_id
   WHERE w.ended_at IS NULL
`

export function workerMethods(db: Database) {
  return {
    registerWorker: async ({ id, source, process, presence, version, heartbeatMs, leaseMs }) => {
      const { host, pid, startTicks, bootId, pidNamespace } = process
      await db.all(REGISTER, [
        id,
        source,
        host,
        pid,
        startTicks,
        bootId,
        pidNamespace,
        JSON.stringify(presence),
        version,
        heartbeatMs,
        leaseMs,
      ])
    },

    heartbeat: async ({ worker, claimIds, loopLagMs, stats }) => {
      const measured = stats === undefined ? null : JSON.stringify(stats)
      const [answer] = await db.heartbeats.writeCounts<HeartbeatRow>(HEARTBEAT, [
        worker,
        loopLagMs,
        claimIds,
        measured,
      ])
      const { known, held, cancelled, unpark, now } = answer!
      if (!known) throw unknownWorker(db.address.where)
      return {
        held,
        cancelled,
        unpark: unpark ?? [],
        serverStartedAt: answer!.server_started_at,
        now,
        paused: toPaused(answer!),
        isOutdated: answer!.min_program_version > SCHEMA_VERSION,
      }
    },

    retireWorker: (worker) =>
      db.transaction('worker:retire', async (connection) => {
        // A claim of this worker may be under way, even when its process is dead: the server finishes what it was
        // sent. The lock waits for it; a worker that turns out to hold something is not at its end yet.
        await connection.all(LOCK_WORKER, [worker])
        await connection.all(RETIRE, [worker])
        await foldCounters(connection, worker)
      }),

    worker: async (id) => {
      const [row] = await db.all<WorkerRow>(WORKER, [id])
      return row ? toWorker(row) : null
    },

    observations: async () => (await db.all<ObservationRow>(WORKERS)).map(observe),
    holdings: async () => (await db.all<HoldingRow>(HOLDINGS)).map(toHolding),
  } satisfies Partial<Store>
}

type HeartbeatRow = PausedRow & {
  known: boolean
  held: string[]
  cancelled: string[]
  unpark: HeartbeatResult['unpark'] | null
  server_started_at: number
  now: number
  min_program_version: number
}

type ObservationRow = WorkerRow & { is_locked: boolean; beat_age_ms: number }

function observe(row: ObservationRow): WorkerObservation {
  const worker = toWorker(row)
  const lock = row.is_locked ? 'held' : 'free'
  const presence = worker.presence.kind === 'session' ? lock : 'unknown'
  return toObservation(worker, presence, Math.max(0, row.beat_age_ms))
}
