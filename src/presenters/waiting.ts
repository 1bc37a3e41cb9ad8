import { setTimeout as sleep } from 'node:timers/promises'
import { canProveDeath } from '../core/decide/liveness.ts'
import { humanizeAgo, humanizeDuration } from '../core/model/time.ts'
import type { Evidence } from '../core/model/worker.ts'
import type { Store, WorkerObservation } from '../core/store/store.ts'
import { formatProcess, plural } from './format.ts'

const EVERY_MS = 1_000
const TARGETS_MAX = 1_000

/**
 * Logs for which workers a worker that has just started has to wait: in a container that was restarted, its predecessor
 * has another host name. Ends when each of them has sent a heartbeat, or has missed one and is logged.
 */
export async function logWaits(
  store: Store,
  source: string,
  log: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let unheard = await listUnseen(store, source)
  while (unheard.length > 0) {
    for (const { worker, evidence } of unheard.filter(isLate)) {
      if (evidence.heartbeatAgeMs >= evidence.leaseMs) continue
      const targets = (await store.claimsOf(worker.id, null, TARGETS_MAX)).length
      if (targets > 0) log(describeSilentWorker(evidence, targets))
    }
    await sleep(EVERY_MS, undefined, { signal, ref: false })
    const before = new Map(
      unheard.filter((one) => !isLate(one)).map(({ worker }) => [worker.id, worker.heartbeats]),
    )
    unheard = (await listUnseen(store, source)).filter(
      ({ worker }) => before.get(worker.id) === worker.heartbeats,
    )
  }
}

/** Lists the workers of a source whose death could not be seen from here. */
async function listUnseen(store: Store, source: string): Promise<WorkerObservation[]> {
  return (await store.observations()).filter(
    ({ worker, evidence }) => worker.source === source && !canProveDeath(evidence),
  )
}

function isLate({ evidence }: WorkerObservation): boolean {
  return evidence.heartbeatAgeMs > 1.5 * evidence.heartbeatMs
}

/** Describes for whom a worker waits, for how long, why, and what shortens it. */
function describeSilentWorker(evidence: Evidence, targets: number): string {
  const { heartbeatAgeMs, leaseMs } = evidence
  return (
    `waiting for ${formatProcess(evidence)}, which holds ${plural(targets, 'target')}: last heartbeat ${humanizeAgo(heartbeatAgeMs)}. ` +
    `Whether it has ended cannot be seen from another host or container, so its targets are free when its lease of ${humanizeDuration(leaseMs)} is over, ` +
    `in ${humanizeDuration(leaseMs - heartbeatAgeMs)} at most. A shorter \`lease\` in the policy shortens the wait.`
  )
}
