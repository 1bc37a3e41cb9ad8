import { humanizeDuration, type Millis } from '../core/model/time.ts'
import { isLost, type AssessedRun } from '../core/recovery/assess.ts'

/**
 * How a live run fares, by its verdict. `waiting` for a worker and `interrupted` are fine; `orphaned` (all its workers
 * are lost and nobody took it up), `stalled` and `dead` are stuck.
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

export function healthOf(assessed: AssessedRun, now: Millis): Health {
  return { ...assessHealth(assessed), sinceMs: now - assessed.run.lastActivityAt }
}

function assessHealth(assessed: AssessedRun): Omit<Health, 'sinceMs'> {
  const { run, decision, owner } = assessed
  const { action, because } = decision
  if (action === 'abandon' || (action === 'fail' && !owner)) return { state: 'dead', because }
  if (run.status === 'queued') {
    const starter = run.adopted ? 'your own program' : 'a worker'
    return { state: 'waiting', because: `it is queued and waits for ${starter}` }
  }
  if (run.status === 'interrupted') {
    const starter = run.adopted ? 'your own program takes it up' : 'a worker starts'
    return { state: 'interrupted', because: `it has work left and goes on when ${starter}` }
  }
  if (!owner && run.adopted) return withoutKnownOwner(assessed)
  if (!owner) return { state: 'orphaned', because: 'no worker of this source is left' }
  if (isLost(owner.assessment)) return { state: 'orphaned', because: owner.assessment.because }
  if (action !== 'leave' || owner.assessment.liveness === 'stalled')
    return { state: 'stalled', because }
  return { state: 'healthy', because }
}

/** Of a row that says nothing of who works on it one knows only whether it moves. */
function withoutKnownOwner({ policy, evidence: { idleMs } }: AssessedRun): Omit<Health, 'sinceMs'> {
  const because = `nobody is known to work on it, and it last changed ${humanizeDuration(idleMs)} ago`
  return { state: idleMs > policy.abandonAfterMs ? 'orphaned' : 'healthy', because }
}
