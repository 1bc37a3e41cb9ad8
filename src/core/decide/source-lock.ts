import type { Guard } from '../model/source-lock.ts'
import { inWords } from '../model/time.ts'
import type { Evidence } from '../model/worker.ts'
import type { Reading } from './liveness.ts'

/** Whoever holds the guard of a source, as it is seen from here. */
export type Holder = {
  readonly reading: Reading
  readonly evidence: Evidence
  /** Under the same kernel and in the same pid namespace: its processes can be seen and ended from here. */
  readonly isHere: boolean
}

export type GuardAdvice =
  /** Nobody has it, or whoever had it cannot be there any more. */
  | { readonly action: 'take'; readonly because: string }
  /** Its holder is dead or silent on this machine: end what is left of it, then take it. */
  | { readonly action: 'end-tree'; readonly because: string }
  /** It will be free, or may be taken, by itself. */
  | { readonly action: 'wait'; readonly because: string }
  | { readonly action: 'refuse'; readonly because: string }

/** Whether a new copy of a source's command may start. `holder`: null when the guard is free or its holder has ended. */
export function decideGuard(guard: Guard | null, holder: Holder | null): GuardAdvice {
  if (!guard || guard.worker === null || !holder)
    return { action: 'take', because: 'nobody has it' }
  const { reading, evidence, isHere } = holder
  const { sign, because } = reading
  const isLost = sign === 'gone' || sign === 'silent'
  if (!isLost) {
    if (guard.endingSince === null)
      return { action: sign === 'unknown' ? 'wait' : 'refuse', because }
    return { action: 'wait', because: `its command is being ended; ${because}` }
  }
  const isSilentForALease = evidence.beatAgeMs > evidence.leaseMs
  // A lost database session is no reason to kill a process that is there: it may only be cut off for a moment.
  if (isHere && evidence.process === 'alive' && !isSilentForALease)
    return { action: 'wait', because }
  if (isHere) return { action: 'end-tree', because }
  const patienceMs = evidence.leaseMs + guard.killTimeoutMs
  const left = patienceMs - evidence.beatAgeMs
  if (left > 0) {
    const why = 'whether its command still runs cannot be seen from here'
    return { action: 'wait', because: `${because}; ${why}: waiting ${inWords(left)} more` }
  }
  return {
    action: 'take',
    because: `${because}, longer than its lease and kill timeout (${inWords(patienceMs)}): not proven, presumed`,
  }
}
