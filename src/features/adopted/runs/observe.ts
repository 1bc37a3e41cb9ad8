import type { Run } from '../../../core/model/run.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { Evidence, Worker } from '../../../core/model/worker.ts'
import type { WorkerObservation } from '../../../core/store/store.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow } from '../table/table.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import type { RowFacts } from './row-run.ts'

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
  if (row.heartbeatAt === null && alive === null && !expectsHeartbeat) return null
  const { leaseMs } = run.policy
  const owner = row.owner === null ? null : sanitizeLine(row.owner)
  const host = owner ?? mapping.name
  const lastHeartbeatAt =
    lastHeartbeatOf(row, now + leaseMs) ??
    (expectsHeartbeat ? latestOf([row.startedAt, row.activityAt]) : null)
  const evidence: Evidence = {
    presence: 'unknown',
    presenceKind: 'none',
    process: 'unknown',
    heartbeatAgeMs:
      lastHeartbeatAt === null
        ? Math.max(leaseMs + 1, now - (row.startedAt ?? now))
        : Math.max(0, now - lastHeartbeatAt),
    heartbeatMs: 0,
    leaseMs,
    loopLagMs: 0,
    host,
    pid: 0,
    label: `row ${sanitizeLine(row.key)} of ${mapping.name}${owner === null ? '' : ` (${owner})`}`,
    ...(row.heartbeatAt === null && { neverBeat: true }),
    ...(lastHeartbeatAt !== null &&
      serverStartedAt !== null && { serverUpMs: Math.max(0, now - serverStartedAt) }),
    ...(alive !== null && { aliveCheck: toAliveCheck(alive) }),
  }
  const worker: Worker = {
    id: ids.worker,
    source: run.source,
    process: { host, pid: 0, startTicks: null, bootId: null, pidNamespace: null },
    presence: { kind: 'none' },
    version: '',
    heartbeatMs: 0,
    leaseMs,
    startedAt: row.startedAt ?? lastHeartbeatAt ?? now,
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
 * The last heartbeat, or a newer start or activity, since some programs send no heartbeat at the start. Times too far in
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

export function latestOf(times: readonly (Millis | null)[]): Millis | null {
  const known = times.filter((at) => at !== null)
  return known.length > 0 ? Math.max(...known) : null
}
