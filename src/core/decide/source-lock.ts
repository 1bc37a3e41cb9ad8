import type { SourceLock } from '../model/source-lock.ts'
import { humanizeDuration } from '../model/time.ts'
import type { Evidence } from '../model/worker.ts'
import { canProveDeath, type LivenessAssessment } from './liveness.ts'

/** The holder of a source lock, as observed from this machine. */
export type LockHolder = {
  readonly assessment: LivenessAssessment
  readonly evidence: Evidence
  /** Under the same kernel and in the same pid namespace: its processes can be seen and ended from here. */
  readonly isLocal: boolean
}

export type SourceLockDecision =
  /** The lock is free, or its holder has provably ended. */
  | { readonly action: 'take'; readonly because: string }
  /** Its holder is dead or silent on this machine: end what is left of it, then take it. */
  | { readonly action: 'end-tree'; readonly because: string }
  /** It will be free, or may be taken, by itself. */
  | { readonly action: 'wait'; readonly because: string }
  | { readonly action: 'refuse'; readonly because: string }

/** Whether a new copy of a source's command may start. `holder`: null when the guard is free or its holder has ended. */
export function decideSourceLock(
  sourceLock: SourceLock | null,
  holder: LockHolder | null,
): SourceLockDecision {
  if (!sourceLock || sourceLock.worker === null || !holder)
    return { action: 'take', because: 'the lock is free' }
  const { assessment, evidence, isLocal } = holder
  const { liveness } = assessment
  const timeoutMs = evidence.leaseMs + sourceLock.killTimeoutMs
  const remainingMs = timeoutMs - evidence.heartbeatAgeMs
  const isLost = liveness === 'gone' || liveness === 'silent'
  // A container that ended a moment ago still looks alive from the next one.
  const mayHaveEnded = liveness === 'present' && !canProveDeath(evidence)
  const because = mayHaveEnded
    ? `${assessment.because}; if it has ended, which cannot be seen from another host or container, the lock is free in ${humanizeDuration(remainingMs)} (its lease and kill timeout)`
    : assessment.because
  if (!isLost) {
    const isProbablyEnded = mayHaveEnded && evidence.presence === 'free'
    if (sourceLock.unlockingSince === null)
      return { action: liveness === 'unknown' || isProbablyEnded ? 'wait' : 'refuse', because }
    return { action: 'wait', because: `its command is being ended; ${because}` }
  }
  const isSilentForALease = evidence.heartbeatAgeMs > evidence.leaseMs
  // A lost database session is no reason to kill a process that is there: it may only be cut off for a moment.
  if (isLocal && evidence.process === 'alive' && !isSilentForALease)
    return { action: 'wait', because }
  if (isLocal) return { action: 'end-tree', because }
  if (remainingMs > 0) {
    const why = 'whether its command still runs cannot be seen from here'
    return {
      action: 'wait',
      because: `${because}; ${why}: waiting ${humanizeDuration(remainingMs)} more`,
    }
  }
  return {
    action: 'take',
    because: `${because}, longer than its lease and kill timeout (${humanizeDuration(timeoutMs)}): not proven, presumed`,
  }
}
