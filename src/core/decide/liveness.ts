import { humanizeAgo, humanizeDuration } from '../model/time.ts'
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
  const name = evidence.label ?? processOf(evidence)
  const lastHeartbeat = evidence.neverBeat
    ? 'no beat so far'
    : `last ${evidence.isActivity ? 'activity' : 'heartbeat'} ${humanizeAgo(heartbeatAgeMs)}`
  if (observer.consecutiveHeartbeats < 2)
    return assessed('unknown', 'the observer has not sent two heartbeats in a row itself')
  if (evidence.aliveCheck === 'gone')
    return assessed('gone', `${name} has ended: alive() returned false`)
  if (evidence.aliveCheck === 'alive')
    return assessed('present', `${name} is alive: alive() returned true`)
  if (presenceKind === 'file' && presence === 'free')
    return assessed('gone', `${name} has ended: the kernel freed its lock (${lastHeartbeat})`)
  if (process === 'gone')
    return assessed('gone', `${processOf(evidence)} no longer exists (${lastHeartbeat})`)
  if (evidence.isActivity) {
    const found = process === 'alive' ? `a process has the id ${evidence.pid}, ` : ''
    return assessed('present', `${name}: ${found}${lastHeartbeat}`)
  }
  const isStable = observer.stableForMs >= leaseMs
  if (isSessionLost(evidence) && isStable && observer.connectedForMs >= sessionGraceMs(evidence))
    return assessed('gone', `${name} lost its database session (${lastHeartbeat})`)
  if (heartbeatAgeMs <= leaseMs) return assessed('present', `${name} is alive: ${lastHeartbeat}`)
  if (evidence.aliveCheck === 'unanswered')
    return assessed('unknown', `${name}: alive() failed or timed out (${lastHeartbeat})`)
  if (serverUpMs <= leaseMs) {
    const since = `its database started only ${humanizeAgo(serverUpMs)}`
    const until = untilLease(leaseMs - serverUpMs)
    return assessed('unknown', `${name}: ${lastHeartbeat}, but ${since}: ${until}`)
  }
  if (isStable) {
    const lease = humanizeDuration(leaseMs)
    return assessed('silent', `${name} is silent: ${lastHeartbeat}, its lease is ${lease}`)
  }
  const until = untilLease(leaseMs - observer.stableForMs)
  return assessed(
    'unknown',
    `${name}: ${lastHeartbeat}, but the observer was cut off too: ${until}`,
  )
}

function assessed(liveness: Liveness, because: string): LivenessAssessment {
  return { liveness, because }
}

function untilLease(ms: number): string {
  return `unknown until one lease has passed, in ${humanizeDuration(ms)}`
}

function processOf({ pid, host, label }: Evidence): string {
  return `process ${pid} on ${host}${label === undefined ? '' : `, of ${label},`}`
}

/** A worker that is present but whose work has not moved for longer than it may is `stalled`. */
export function assessProgress(
  assessment: LivenessAssessment,
  idleMs: number,
  maxSilenceMs: number,
): LivenessAssessment {
  if (assessment.liveness !== 'present' || idleMs <= maxSilenceMs) return assessment
  const idle = humanizeDuration(idleMs)
  return assessed('stalled', `${assessment.because}, but no progress for ${idle}`)
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

/** Returns true if this process would see it when the other one ends: by its process, or by the lock file of one host. */
export function canProveDeath({ process, presenceKind, presence }: Evidence): boolean {
  return process !== 'unknown' || (presenceKind === 'file' && presence !== 'unknown')
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
