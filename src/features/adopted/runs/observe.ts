import type { Run } from '../../../core/model/run.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { Evidence, Worker } from '../../../core/model/worker.ts'
import type { WorkerObservation } from '../../../core/store/store.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow } from '../table/table.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import { rowProcessState } from './row-process.ts'
import type { RowFacts } from './row-run.ts'
import { latestOf } from './times.ts'

type ObservedRowFacts = RowFacts & {
  readonly mapping: Mapping
  readonly run: Run
  readonly ids: { readonly worker: string }
}

/** Returns the worker of a row as far as the row or `alive` shows one; null if neither does. */
export function observe(
  row: AdoptedRow,
  { mapping, run, ids, now, serverStartedAt, callbackResults }: ObservedRowFacts,
): WorkerObservation | null {
  const { alive } = callbackResults
  // In a table of targets with a heartbeat column every worker must send heartbeats.
  const expectsHeartbeat = mapping.kind === 'targets' && mapping.columns.heartbeatAt !== undefined
  // Without a heartbeat column a target that makes no progress is stalled, and never lost.
  const isActivityOfTarget =
    mapping.kind === 'targets' && !expectsHeartbeat && mapping.columns.activityAt !== undefined
  const { leaseMs } = run.policy
  const found = rowProcessState(row, now)
  // Containers can share a host name without sharing processes, so a recent heartbeat outweighs a missing process.
  const isBeating = row.heartbeatAt !== null && now - row.heartbeatAt <= leaseMs / 2
  const process = found === 'gone' && isBeating ? 'unknown' : found
  const isSilent = row.heartbeatAt === null && alive === null && !expectsHeartbeat
  if (isSilent && !isActivityOfTarget && process === 'unknown') return null
  // A row without heartbeat is alive for as long as its process exists.
  const isActivity = isActivityOfTarget || (isSilent && process !== 'unknown')
  const owner = row.owner === null ? null : sanitizeLine(row.owner)
  const host = row.host === null ? (owner ?? '') : sanitizeLine(row.host)
  // '' and 0: unknown.
  const pid = row.pid ?? 0
  const lastHeartbeatAt =
    lastHeartbeatOf(row, now + leaseMs) ??
    (expectsHeartbeat || isActivity ? latestOf([row.startedAt, row.activityAt]) : null)
  const evidence: Evidence = {
    presence: 'unknown',
    presenceKind: 'none',
    process,
    heartbeatAgeMs:
      lastHeartbeatAt === null
        ? Math.max(leaseMs + 1, now - (row.startedAt ?? now))
        : Math.max(0, now - lastHeartbeatAt),
    heartbeatMs: 0,
    leaseMs,
    loopLagMs: 0,
    host,
    pid,
    label: `row ${sanitizeLine(row.key)} of ${mapping.name}${owner === null ? '' : ` (${owner})`}`,
    ...(row.heartbeatAt === null && !isActivity && { neverBeat: true }),
    ...(isActivity && { isActivity }),
    ...(lastHeartbeatAt !== null &&
      serverStartedAt !== null && { serverUpMs: Math.max(0, now - serverStartedAt) }),
    ...(alive !== null && { aliveCheck: toAliveCheck(alive) }),
  }
  const worker: Worker = {
    id: ids.worker,
    source: run.source,
    process: { host, pid, startTicks: null, bootId: null, pidNamespace: null },
    presence: { kind: 'none' },
    version: '',
    heartbeatMs: 0,
    leaseMs,
    // 0: unknown, as for the process id.
    startedAt: row.startedAt ?? 0,
    lastHeartbeatAt: lastHeartbeatAt ?? row.startedAt ?? now,
    heartbeats: 0,
    loopLagMs: 0,
    endedAt: null,
  }
  return { worker, evidence }
}

function toAliveCheck(alive: boolean | 'unanswered'): Evidence['aliveCheck'] {
  return alive === 'unanswered' ? alive : alive ? 'alive' : 'gone'
}

/**
 * Returns the last heartbeat, or a newer start or activity: some programs send no heartbeat at the start. Times too far in
 * the future are ignored, such as the end of the day for a date without a time.
 */
function lastHeartbeatOf(
  { heartbeatAt, startedAt, activityAt }: AdoptedRow,
  latest: Millis,
): Millis | null {
  if (heartbeatAt === null) return null
  const others = [startedAt, activityAt].filter((at) => at !== null && at <= latest)
  return latestOf([heartbeatAt, ...others])
}
