import type { Millis } from '../../model/time.ts'
import { isLost, type JudgedRun } from '../../runtime/judgement.ts'

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

export function healthOf(judged: JudgedRun, now: Millis): Health {
  return { ...stateOf(judged), sinceMs: now - judged.run.lastActivityAt }
}

function stateOf({ run, decision, owner }: JudgedRun): Omit<Health, 'sinceMs'> {
  const { action, because } = decision
  if (action === 'abandon' || (action === 'fail' && !owner)) return { state: 'dead', because }
  if (run.status === 'queued')
    return { state: 'waiting', because: 'it is queued and waits for a worker' }
  if (run.status === 'interrupted') {
    return { state: 'interrupted', because: 'it has work left and goes on when a worker starts' }
  }
  if (!owner) return { state: 'orphaned', because: 'no worker of this source is left' }
  if (isLost(owner.reading)) return { state: 'orphaned', because: owner.reading.because }
  if (action !== 'leave' || owner.reading.sign === 'stalled') return { state: 'stalled', because }
  return { state: 'healthy', because }
}
