import { inWords } from '../model/time.ts'
import type { Evidence, Sign } from '../model/worker.ts'

/** What the judge knows of itself: who was cut off until now mistakes its own silence for that of others. */
export type Judge = {
  /** Own beats that the store accepted, without a miss in between. */
  readonly beatsInARow: number
  /** Since its last own gap, or since the server started if that is later; Infinity when neither happened. */
  readonly steadyForMs: number
}

/** A judge that has nothing to doubt: for one-off looks, and for tests. */
export const STEADY: Judge = { beatsInARow: Infinity, steadyForMs: Infinity }

export type Reading = { readonly sign: Sign; readonly because: string }

/** What the evidence says about a worker. Strongest first; the sentence names the one that was used. */
export function readSign(evidence: Evidence, judge: Judge): Reading {
  const { presence, presenceKind, process, beatAgeMs, heartbeatMs, leaseMs } = evidence
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
  // A living worker can lose this lock too (server restart, cut connection): it only shortens the wait,
  // and only for a judge that was itself connected all the time.
  const settled = judge.steadyForMs >= leaseMs
  if (presenceKind === 'session' && presence === 'free' && beatAgeMs > 2 * heartbeatMs && settled) {
    return {
      sign: 'gone',
      because: `${who} lost its database session and missed two beats (${lastBeat})`,
    }
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
