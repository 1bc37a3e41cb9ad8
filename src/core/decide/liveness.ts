import { humanizeDuration } from '../model/time.ts'
import { sessionGraceMs, type Evidence, type Liveness } from '../model/worker.ts'

/** The health of the observer: one that was cut off until now mistakes its own silence for that of others. */
export type ObserverHealth = {
  /** Own heartbeats that the store accepted, without a miss in between. */
  readonly consecutiveHeartbeats: number
  /** Since its last own gap, or since the server started if that is later; Infinity when neither happened. */
  readonly stableForMs: number
  /** Since it connected, or since its last own gap if that is later: only what it observed itself counts. */
  readonly connectedForMs: number
}

/** An observer that is never cut off: for commands that run once, and for tests. */
export const TRUSTED_OBSERVER: ObserverHealth = {
  consecutiveHeartbeats: Infinity,
  stableForMs: Infinity,
  connectedForMs: Infinity,
}

export type LivenessAssessment = { readonly liveness: Liveness; readonly because: string }

/** Assesses a worker by its evidence, strongest first; the sentence names the evidence that was used. */
export function assessLiveness(evidence: Evidence, observer: ObserverHealth): LivenessAssessment {
  const { presence, presenceKind, process, heartbeatAgeMs, leaseMs } = evidence
  const { serverUpMs = Infinity } = evidence
  const name = evidence.label ?? `process ${evidence.pid} on ${evidence.host}`
  const lastHeartbeat = evidence.neverBeat
    ? 'no beat so far'
    : `last heartbeat ${humanizeDuration(heartbeatAgeMs)} ago`

  if (observer.consecutiveHeartbeats < 2) {
    return {
      liveness: 'unknown',
      because: 'the observer has not sent two heartbeats in a row itself',
    }
  }
  if (evidence.aliveCheck === 'gone')
    return { liveness: 'gone', because: `${name} has ended: alive() says so` }
  if (evidence.aliveCheck === 'alive')
    return { liveness: 'present', because: `${name} lives: alive() says so` }
  if (presenceKind === 'file' && presence === 'free') {
    return {
      liveness: 'gone',
      because: `${name} has ended: the kernel freed its lock (${lastHeartbeat})`,
    }
  }
  if (process === 'gone') {
    return { liveness: 'gone', because: `${name} no longer exists (${lastHeartbeat})` }
  }
  const isStable = observer.stableForMs >= leaseMs
  if (isSessionLost(evidence) && isStable && observer.connectedForMs >= sessionGraceMs(evidence)) {
    return { liveness: 'gone', because: `${name} lost its database session (${lastHeartbeat})` }
  }
  if (evidence.aliveCheck === 'unanswered' && heartbeatAgeMs > leaseMs)
    return { liveness: 'unknown', because: `${name}: alive() gave no answer (${lastHeartbeat})` }
  if (heartbeatAgeMs > leaseMs && serverUpMs <= leaseMs) {
    const since = `its database started only ${humanizeDuration(serverUpMs)} ago`
    return { liveness: 'unknown', because: `${name}: ${lastHeartbeat}, but ${since}` }
  }
  if (heartbeatAgeMs > leaseMs) {
    return isStable
      ? {
          liveness: 'silent',
          because: `${name} is silent: ${lastHeartbeat}, its lease is ${humanizeDuration(leaseMs)}`,
        }
      : {
          liveness: 'unknown',
          because: `${name}: ${lastHeartbeat}, but the observer was cut off too and waits one lease`,
        }
  }
  return { liveness: 'present', because: `${name} is alive: ${lastHeartbeat}` }
}

/** A worker that is present but whose work has not moved for longer than it may is `stalled`. */
export function assessProgress(
  assessment: LivenessAssessment,
  idleMs: number,
  maxSilenceMs: number,
): LivenessAssessment {
  if (assessment.liveness !== 'present' || idleMs <= maxSilenceMs) return assessment
  return {
    liveness: 'stalled',
    because: `${assessment.because}, but no progress for ${humanizeDuration(idleMs)}`,
  }
}

/**
 * Returns true if the session lock is free and no heartbeat came for so long that this shortens the wait for the lease.
 * A living worker loses its lock too (server restart, cut connection, no free connection slot), so the lock proves
 * nothing about a process that the kernel shows as alive: there only the lease counts.
 */
function isSessionLost(evidence: Evidence): boolean {
  const { presence, presenceKind, process, heartbeatAgeMs } = evidence
  const isFree = presenceKind === 'session' && presence === 'free'
  return isFree && process === 'unknown' && heartbeatAgeMs > sessionGraceMs(evidence)
}

/** The kernel shows that the process has ended: no heartbeat can come any more. */
export function isProvenDead({ process, presenceKind, presence }: Evidence): boolean {
  return process === 'gone' || (presenceKind === 'file' && presence === 'free')
}

/**
 * Returns how long a process that has just connected must watch before it may believe this evidence: it cannot tell a
 * dead worker from an outage that just ended. Zero where nothing has to be believed.
 */
export function requiredObservationMs(evidence: Evidence): number {
  const { liveness } = assessLiveness(evidence, TRUSTED_OBSERVER)
  if ((liveness !== 'gone' && liveness !== 'silent') || isProvenDead(evidence)) return 0
  const isBySession = liveness === 'gone' && evidence.aliveCheck === undefined
  return isBySession ? sessionGraceMs(evidence) : 2 * evidence.heartbeatMs
}
