import type { StartAction } from '../../core/decide/start.ts'
import type { Run } from '../../core/model/run.ts'
import type { Cursor } from '../../core/model/target.ts'
import type { ClassifiedRuns } from '../../core/recovery/clean.ts'
import type { AssessedRun, Owner } from '../../core/recovery/assess.ts'
import type { StartAdvice } from '../../core/recovery/advise-start.ts'

/** What the library answers to those who ask before they act. */

/** `run`: what it is about; `owner`: who has it, since when it beats, and its last sign of life. */
export type Check = {
  action: StartAction
  because: string
  /** Why nobody can end the dead row that is in the way: its table has no word for it. */
  blockedBy?: string
  run?: Run
  owner?: Owner
  /** Where a run with one target goes on. */
  cursor?: Cursor
}

/** A run and what can be said about it: the verdict, its reason, and the evidence. */
export type SummedRun = Run &
  Pick<AssessedRun, 'decision' | 'evidence'> & {
    /** Who has it, or had it last, and what is known of them. */
    heldBy: Owner | null
    /** Where a run with one target goes on; null for a crawl. */
    checkpoint: { page: number; pageTarget: number | null } | null
  }

export type Summary = {
  total: number
  /** At work now, or waiting for a worker. */
  active: SummedRun[]
  /** Nobody is at work, and there is something to go on from. */
  resumable: SummedRun[]
  /** Nobody is at work, nothing was done, and the policy's time is over. */
  dead: SummedRun[]
}

export function toCheck({ action, because, blockedBy, run, owner, target }: StartAdvice): Check {
  const cursor = target && target.seq > 0 ? cursorOf(target) : null
  return {
    action,
    because,
    ...(blockedBy !== undefined && { blockedBy }),
    ...(run && { run }),
    ...(owner && { owner }),
    ...(cursor && { cursor }),
  }
}

export function toSummary({ total, active, resumable, dead }: ClassifiedRuns): Summary {
  return {
    total,
    active: active.map(toSummedRun),
    resumable: resumable.map(toSummedRun),
    dead: dead.map(toSummedRun),
  }
}

function cursorOf({ seq, page, pageTarget, next, lastItemId, cursor }: Cursor): Cursor {
  return { seq, page, pageTarget, next, lastItemId, cursor }
}

function toSummedRun({ run, target, decision, owner, evidence }: AssessedRun): SummedRun {
  return {
    ...run,
    decision,
    evidence,
    heldBy: owner,
    checkpoint:
      target && target.seq > 0 ? { page: target.page, pageTarget: target.pageTarget } : null,
  }
}
