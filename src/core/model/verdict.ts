import type { Run, RunStatus } from './run.ts'
import type { Target, TargetStatus } from './target.ts'
import type { RunOrigin } from './traits.ts'
import type { Evidence, Liveness } from './worker.ts'

export const ACTIONS = [
  'leave',
  'alert',
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
 * `leave` the living · `alert` an operator · `resume` from the cursor · `replan`: nothing was done, back in the queue ·
 * `retry` as a new run · `park` as dead letter · `hold` for an operator · `fail` · `wait`: too young to decide ·
 * `abandon` as dead · `resumable`: kept, never cleaned.
 */
export type Action = (typeof ACTIONS)[number]

/** The status of a claimed target after an action; the others leave it as it is. */
export const TARGET_STATUS_AFTER: Readonly<Partial<Record<Action, TargetStatus>>> = {
  resume: 'planned',
  replan: 'planned',
  retry: 'failed',
  park: 'parked',
  hold: 'stuck',
  fail: 'failed',
}

/** The status of a run after an action on it as a whole; the others leave it as it is. */
export const RUN_STATUS_AFTER: Readonly<Partial<Record<Action, RunStatus>>> = {
  resume: 'interrupted',
  fail: 'failed',
  abandon: 'abandoned',
}

/** What a verdict about a run as a whole was made of. */
export type RunEvidence = {
  /** Time since it was created. */
  readonly ageMs: number | null
  /** Since anything of it last changed. */
  readonly idleMs: number | null
  /** Saved pages. */
  readonly pages: number
  /** Items saved as new or changed. */
  readonly extracted: number
  /** Items seen again that had not changed. */
  readonly unchanged: number
  /** What pages reported as left out. */
  readonly skipped: number
  /** Whether anything was saved or reported. */
  readonly hasProgress: boolean
  /** Of the worker that has it, or last had it; null when none is known. */
  readonly owner: Evidence | null
}

/** A decision and the reason for it. */
export type Decision = {
  /** What follows. */
  readonly action: Action
  /** Why. */
  readonly because: string
}

/** A decision about a run or a target, with all that led to it and what came of it. */
export type Verdict = Decision & {
  /** The id of the run. */
  readonly run: string
  /** The source of the run. */
  readonly source: string
  /** The id of the target; null if the verdict is about the run as a whole. */
  readonly target: string | null
  /** The key of the target; null if the verdict is about the run as a whole. */
  readonly key: string | null
  /** Whether the worker that holds it is alive. */
  readonly liveness: Liveness
  /** The facts that the verdict is based on. */
  readonly evidence: Evidence | RunEvidence
  /** The status before. */
  readonly from: string
  /** The status after. */
  readonly to: string
  /** Recovery does not apply it by itself: an operator decides. */
  readonly needsAttention: boolean
  /** False in a dry run, and when the row had changed since it was assessed. */
  readonly applied: boolean
  /** Why it cannot be applied: the user's table has no status for it. Omitted if it can be applied. */
  readonly blockedBy?: string
  /** The row of a table of your own that the run is; omitted for all else, and for targets in such a table. */
  readonly row?: RunOrigin
  /** The row of a table of your own that the target is; omitted for all else. */
  readonly targetRow?: RunOrigin
}

type WithTraits = Pick<Run, 'traits'>

/** The fields of a verdict about this run, or about its target, that name what it is about. */
export function verdictOn(run: Run, target: Target | null, decision: Decision) {
  const { origin, hasTargets } = run.traits
  return {
    ...decision,
    run: run.id,
    source: run.source,
    target: target?.id ?? null,
    key: target?.key ?? null,
    ...(origin && !hasTargets && { row: origin }),
    ...(target?.origin && { targetRow: target.origin }),
    ...blockedField(run, decision),
  }
}

/** Returns the setting that is missing for this verdict on the run; null if it can be applied. */
export function blockedReason(
  { traits }: WithTraits,
  { action }: Pick<Decision, 'action'>,
): string | null {
  return traits.blocked[action] ?? null
}

/** The same as a part of the verdict. */
export function blockedField(run: WithTraits, decision: Decision): Pick<Verdict, 'blockedBy'> {
  const blockedBy = blockedReason(run, decision)
  return blockedBy === null ? {} : { blockedBy }
}
