import type { RunStatus } from '../core/model/run.ts'
import type { TargetStatus } from '../core/model/target.ts'

/** Every legal change of state; anything else is a bug. The tests hold both stores to these tables by triggers. */
export const TARGET_TRANSITIONS: Readonly<Record<TargetStatus, readonly TargetStatus[]>> = {
  planned: ['in_progress', 'parked'],
  in_progress: ['planned', 'done', 'failed', 'stuck', 'parked'],
  done: ['planned'],
  failed: ['planned', 'parked'],
  stuck: ['planned', 'parked'],
  parked: ['planned'],
}

/** `done`: a request that its crawler adds as handled. */
export const TARGET_STARTS: readonly TargetStatus[] = ['planned', 'done']

export const RUN_TRANSITIONS: Readonly<Record<RunStatus, readonly RunStatus[]>> = {
  queued: ['running', 'cancelled', 'abandoned', 'failed', 'succeeded'],
  running: ['interrupted', 'succeeded', 'failed', 'cancelled', 'abandoned'],
  interrupted: ['running', 'succeeded', 'failed', 'cancelled', 'abandoned'],
  // Ended runs change only by operator actions: a reset or a rewind reopens them, a revert undoes the end.
  succeeded: ['interrupted'],
  failed: ['interrupted', 'queued'],
  cancelled: ['interrupted', 'queued'],
  abandoned: ['interrupted', 'queued'],
}
