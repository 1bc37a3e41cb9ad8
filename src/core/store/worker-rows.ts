import { processState } from '../host/identity.ts'
import type { Policy } from '../model/policy.ts'
import type { Evidence, Presence, ProcessIdentity, Worker } from '../model/worker.ts'
import { parsePolicy } from './rows.ts'
import type { Holding, WorkerObservation } from './store.ts'

/** Row → model of workers, as in `rows.ts`. */

export type WorkerRow = {
  id: string
  source: string
  host: string
  pid: number
  start_ticks: number | null
  boot_id: string | null
  pid_namespace: string | null
  presence: Presence
  version: string
  heartbeat_ms: number
  lease_ms: number
  started_at: number
  last_heartbeat_at: number
  heartbeats: number
  loop_lag_ms: number
  ended_at: number | null
}

export type ProcessRow = Pick<
  WorkerRow,
  'host' | 'pid' | 'start_ticks' | 'boot_id' | 'pid_namespace'
>

export function toProcess({ host, pid, ...row }: ProcessRow): ProcessIdentity {
  const { start_ticks: startTicks, boot_id: bootId, pid_namespace: pidNamespace } = row
  return { host, pid, startTicks, bootId, pidNamespace }
}

export function toWorker(row: WorkerRow): Worker {
  return {
    id: row.id,
    source: row.source,
    process: toProcess(row),
    presence: row.presence,
    version: row.version,
    heartbeatMs: row.heartbeat_ms,
    leaseMs: row.lease_ms,
    startedAt: row.started_at,
    lastHeartbeatAt: row.last_heartbeat_at,
    heartbeats: row.heartbeats,
    loopLagMs: row.loop_lag_ms,
    endedAt: row.ended_at,
  }
}

export type HoldingRow = {
  worker_id: string
  run_id: string
  group_name: string
  policy: Partial<Policy> | null
  targets: number
  last_activity_at: number
}

export function toHolding(row: HoldingRow): Holding {
  return {
    worker: row.worker_id,
    run: row.run_id,
    group: row.group_name === '' ? null : row.group_name,
    policy: parsePolicy(row.policy ?? {}),
    targets: row.targets,
    lastActivityAt: row.last_activity_at,
  }
}

/** What is observed of a worker: its row, what became of its lock, and the time since its last heartbeat. */
export function toObservation(
  worker: Worker,
  presence: Evidence['presence'],
  heartbeatAgeMs: number,
): WorkerObservation {
  const { heartbeatMs, leaseMs, loopLagMs, process } = worker
  const { host, pid } = process
  const times = { heartbeatAgeMs, heartbeatMs, leaseMs, loopLagMs }
  const seen = { presence, presenceKind: worker.presence.kind, process: processState(process) }
  return { worker, evidence: { ...seen, ...times, host, pid } }
}
