import { decide } from '../../decide/recovery.ts'
import type { Run } from '../../model/run.ts'
import { inWords, type Millis } from '../../model/time.ts'
import type { WorkerView } from '../view.ts'

/**
 * How a live run fares. `waiting` for a worker and `interrupted` are fine; `orphaned` (all its workers are lost
 * and nobody took it up), `stalled` and `dead` are stuck.
 */
export type Health = {
  readonly state: HealthState
  readonly because: string
  readonly sinceMs: number
}
export type HealthState = 'healthy' | 'waiting' | 'interrupted' | 'orphaned' | 'stalled' | 'dead'

export function isStuck({ state }: Health): boolean {
  return state === 'orphaned' || state === 'stalled' || state === 'dead'
}

/** `workers`: those of the run's source. */
export function healthOf(run: Run, workers: readonly WorkerView[], now: Millis): Health {
  const sinceMs = now - run.lastActivityAt
  if (run.status === 'running') return { ...healthOfRunning(run, workers, sinceMs), sinceMs }
  const { action, because } = decide(
    { run: snapshotOf(run), target: null, owner: null },
    run.policy,
    now,
  )
  if (action === 'abandon' || action === 'fail') return { state: 'dead', because, sinceMs }
  return run.status === 'queued'
    ? { state: 'waiting', because: 'it is queued and waits for a worker', sinceMs }
    : {
        state: 'interrupted',
        because: 'it has work left and goes on when a worker starts',
        sinceMs,
      }
}

function healthOfRunning(
  run: Run,
  workers: readonly WorkerView[],
  sinceMs: number,
): Omit<Health, 'sinceMs'> {
  const own = run.owner === null ? workers : workers.filter(({ id }) => id === run.owner)
  const alive = own.find(
    ({ sign }) => sign === 'present' || sign === 'stalled' || sign === 'unknown',
  )
  if (!alive) {
    const lost = own.toSorted((a, b) => b.lastBeatAt.localeCompare(a.lastBeatAt))[0]
    return { state: 'orphaned', because: lost?.because ?? 'no worker of this source is left' }
  }
  if (sinceMs > run.policy.maxSilenceMs) {
    return { state: 'stalled', because: `${alive.because}; no progress for ${inWords(sinceMs)}` }
  }
  return { state: 'healthy', because: alive.because }
}

function snapshotOf(run: Run) {
  const { status, kind, createdAt, startedAt, lastActivityAt, retries, counts } = run
  const saved = counts.itemsNew + counts.itemsUpdated + counts.itemsUnchanged
  const hasProgress = counts.pages + saved + counts.skipped > 0
  return {
    status,
    kind,
    createdAt,
    startedAt,
    lastActivityAt,
    retries,
    hasProgress,
    reverted: false,
  }
}
