import type { RunId, TargetId } from './id.ts'
import type { TargetStatus } from './target.ts'
import type { Evidence, Sign } from './worker.ts'

export const ACTIONS = [
  'leave',
  'alert',
  'stop',
  'resume',
  'replan',
  'retry',
  'park',
  'hold',
  'fail',
  'wait',
  'abandon',
  'resumable',
] as const
/**
 * `leave` the living · `alert` people · `stop` a run that overran · `resume` from the cursor · `replan`: nothing was
 * done, back in line · `retry` as a new run · `park` as dead letter · `hold` for a person · `fail` · `wait`: too young
 * to judge · `abandon` as dead · `resumable`: kept, never cleaned.
 */
export type Action = (typeof ACTIONS)[number]

/** What an action makes of a claimed target; the others leave it alone. */
export const TARGET_AFTER: Readonly<Partial<Record<Action, TargetStatus>>> = {
  resume: 'planned',
  replan: 'planned',
  retry: 'failed',
  park: 'parked',
  hold: 'stuck',
  fail: 'failed',
}

/** A decision and the reason for it. */
export type Decision = { readonly action: Action; readonly because: string }

/** A decision about a run or a target, with all that led to it and what came of it. */
export type Verdict = Decision & {
  readonly run: RunId
  readonly source: string
  readonly target: TargetId | null
  readonly sign: Sign
  readonly evidence: Evidence | null
  readonly from: string
  readonly to: string
  /** False in a dry run, and when the row was no longer what had been judged. */
  readonly applied: boolean
}
