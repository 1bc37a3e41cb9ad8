import type { Decision } from '../model/verdict.ts'
import type { SourceLockDecision } from './source-lock.ts'

/** The advice before a start: `start` (nothing live) · `resume` · `clean` (a dead one first) · `wait` (someone is at it). */
export type StartAction = 'start' | 'resume' | 'clean' | 'wait'
export type StartAdvice = { readonly action: StartAction; readonly because: string }

/** Decides whether a start is possible beside the source's live run, if any. `judged`: what recovery would do with it. `guard`: whether a copy of its command may start. */
export function decideStart(
  live: {
    readonly hasProgress: boolean
    /** Its owner is alive, or not proven dead. */
    readonly isHeld: boolean
  } | null,
  decision: Decision | null,
  sourceLock: SourceLockDecision | null = null,
): StartAdvice {
  if (sourceLock && (sourceLock.action === 'refuse' || sourceLock.action === 'wait'))
    return { action: 'wait', because: `a command of it is wrapped: ${sourceLock.because}` }
  if (!live || !decision) return { action: 'start', because: 'no run of it is live' }
  const { action, because } = decision
  if (live.isHeld) return { action: 'wait', because }
  switch (action) {
    case 'abandon':
      return { action: 'clean', because }
    case 'fail':
    case 'hold':
    case 'park':
      return { action: 'clean', because }
    case 'retry':
    case 'replan':
      return { action: 'start', because }
    case 'resume':
    case 'resumable':
      return { action: 'resume', because }
    case 'wait':
      return live.hasProgress ? { action: 'resume', because } : { action: 'start', because }
    case 'leave':
    case 'alert':
      return { action: 'resume', because }
  }
}
