import { inWords } from '../model/time.ts'
import { sessionGraceMs, type Evidence, type Sign } from '../model/worker.ts'

/** What the judge knows of itself: who was cut off until now mistakes its own silence for that of others. */
export type Judge = {
  /** Own beats that the store accepted, without a miss in between. */
  readonly beatsInARow: number
  /** Since its last own gap, or since the server started if that is later; Infinity when neither happened. */
  readonly steadyForMs: number
  /** Since it connected, or since its last own gap if that is later: only what it watched itself counts. */
  readonly connectedForMs: number
}

/** A judge that has nothing to doubt: for one-off looks, and for tests. */
export const STEADY: Judge = {
  beatsInARow: Infinity,
  steadyForMs: Infinity,
  connectedForMs: Infinity,
}

export type Reading = { readonly sign: Sign; readonly because: string }

/** What the evidence says about a worker. Strongest first; the sentence names the one that was used. */
export function readSign(evidence: Evidence, judge: Judge): Reading {
  const { presence, presenceKind, process, beatAgeMs, leaseMs } = evidence
  const { serverUpMs = Infinity } = evidence
  const who = evidence.who ?? `process ${evidence.pid} on ${evidence.host}`
  const lastBeat = evidence.neverBeat ? 'no beat so far' : `last beat ${inWords(beatAgeMs)} ago`

  if (judge.beatsInARow < 2) {
    return { sign: 'unknown', because: 'the judge has not been heard twice in a row itself' }
  }
  if (evidence.told === 'gone')
    return { sign: 'gone', because: `${who} has ended: alive() says so` }
  if (evidence.told === 'alive')
    return { sign: 'present', because: `${who} lives: alive() says so` }
  if (presenceKind === 'file' && presence === 'free') {
    return { sign: 'gone', because: `${who} has ended: the kernel freed its lock (${lastBeat})` }
  }
  if (process === 'gone') {
    return { sign: 'gone', because: `${who} no longer exists (${lastBeat})` }
  }
  const settled = judge.steadyForMs >= leaseMs
  if (isSessionLost(evidence) && settled && judge.connectedForMs >= sessionGraceMs(evidence)) {
    return { sign: 'gone', because: `${who} lost its database session (${lastBeat})` }
  }
  if (evidence.told === 'unanswered' && beatAgeMs > leaseMs)
    return { sign: 'unknown', because: `${who}: alive() gave no answer (${lastBeat})` }
  if (beatAgeMs > leaseMs && serverUpMs <= leaseMs) {
    const since = `its database started only ${inWords(serverUpMs)} ago`
    return { sign: 'unknown', because: `${who}: ${lastBeat}, but ${since}` }
  }
  if (beatAgeMs > leaseMs) {
    return settled
      ? {
          sign: 'silent',
          because: `${who} is silent: ${lastBeat}, its lease is ${inWords(leaseMs)}`,
        }
      : {
          sign: 'unknown',
          because: `${who}: ${lastBeat}, but the judge was cut off too and waits one lease`,
        }
  }
  return { sign: 'present', because: `${who} is alive: ${lastBeat}` }
}

/** A worker that is present but whose work has not moved for longer than it may is `stalled`. */
export function withProgress(reading: Reading, stillMs: number, maxSilenceMs: number): Reading {
  if (reading.sign !== 'present' || stillMs <= maxSilenceMs) return reading
  return {
    sign: 'stalled',
    because: `${reading.because}, but no progress for ${inWords(stillMs)}`,
  }
}

/**
 * Returns true if the session lock is free and no heartbeat came for so long that this shortens the wait for the lease.
 * A living worker loses its lock too (server restart, cut connection, no free connection slot), so the lock proves
 * nothing about a process that the kernel shows as alive: there only the lease counts.
 */
function isSessionLost(evidence: Evidence): boolean {
  const { presence, presenceKind, process, beatAgeMs } = evidence
  const isFree = presenceKind === 'session' && presence === 'free'
  return isFree && process === 'unknown' && beatAgeMs > sessionGraceMs(evidence)
}

/** The kernel shows that the process has ended: no heartbeat can come any more. */
export function isProven({ process, presenceKind, presence }: Evidence): boolean {
  return process === 'gone' || (presenceKind === 'file' && presence === 'free')
}

/**
 * Returns how long a process that has just connected must watch before it may believe this evidence: it cannot tell a
 * dead worker from an outage that just ended. Zero where nothing has to be believed.
 */
export function watchMs(evidence: Evidence): number {
  const { sign } = readSign(evidence, STEADY)
  if ((sign !== 'gone' && sign !== 'silent') || isProven(evidence)) return 0
  const isBySession = sign === 'gone' && evidence.told === undefined
  return isBySession ? sessionGraceMs(evidence) : 2 * evidence.heartbeatMs
}
