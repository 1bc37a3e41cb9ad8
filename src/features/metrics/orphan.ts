import type { RunId, TargetId, WorkerId } from '../../core/model/id.ts'
import type { Millis } from '../../core/model/time.ts'
import {
  RUN_STATUS_AFTER,
  TARGET_STATUS_AFTER,
  type RunEvidence,
} from '../../core/model/verdict.ts'
import type { Evidence } from '../../core/model/worker.ts'
import { assessLiveness, TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'

/**
 * Why a run had to be recovered. `gone`, `silent`: its worker was; `stalled`: the worker is alive but makes no progress;
 * `overrun`: it took longer than allowed; `stale`, `abandoned`: it had no known owner for too long.
 */
export const ORPHAN_REASONS = [
  'gone',
  'silent',
  'stalled',
  'overrun',
  'stale',
  'abandoned',
] as const
export type OrphanReason = (typeof ORPHAN_REASONS)[number]

export type Orphan = {
  readonly run: RunId
  readonly reason: OrphanReason
  /** The lost worker; null when none is known. All its targets of one run count as one orphaned run. */
  readonly worker: WorkerId | null
  /** From the worker's last heartbeat until the recovery; null when it was never silent. */
  readonly silentMs: number | null
  /** The target that is claimable again, and its epoch: the next claim has the next epoch. */
  readonly waiting: { readonly target: TargetId; readonly epoch: number } | null
}

/** The fields of an audit entry that are read here. */
type Entry = {
  readonly at: Millis
  readonly action: string
  /** Null for an action on a source. */
  readonly run: RunId | null
  readonly target: TargetId | null
  readonly evidence: unknown
  readonly before: unknown
  readonly after: unknown
}

/** Returns the recovery that an audit entry describes; null for operator actions and other entries. */
export function orphanOf(entry: Entry): Orphan | null {
  const { action, target, run } = entry
  // Operator actions have no evidence, except cleaning: there the age is the evidence.
  if (run === null || typeof entry.evidence !== 'object' || entry.evidence === null) return null
  if (target === null) {
    return action in RUN_STATUS_AFTER
      ? orphanOfRun(run, action, entry.evidence as RunEvidence)
      : null
  }
  if (!(action in TARGET_STATUS_AFTER)) return null
  const evidence = entry.evidence as Evidence
  const reason = reasonOf(evidence) ?? 'stalled'
  const { worker, epoch } = (entry.before ?? {}) as { worker?: WorkerId; epoch?: number }
  const { status } = (entry.after ?? {}) as { status?: unknown }
  const waits = status === 'planned' && typeof epoch === 'number'
  return {
    run,
    reason,
    worker: worker ?? null,
    silentMs: reason === 'stalled' ? null : evidence.heartbeatAgeMs,
    waiting: waits ? { target, epoch } : null,
  }
}

function orphanOfRun(run: RunId, action: string, { owner, idleMs }: RunEvidence): Orphan {
  const rest = { run, worker: null, waiting: null }
  if (action === 'abandon') return { ...rest, reason: 'abandoned', silentMs: idleMs }
  if (!owner) return { ...rest, reason: 'stale', silentMs: idleMs }
  const lost = reasonOf(owner)
  return { ...rest, reason: lost ?? 'overrun', silentMs: lost ? owner.heartbeatAgeMs : null }
}

/** Returns the reason for a lost worker; null for a live one. */
function reasonOf(evidence: Evidence): 'gone' | 'silent' | null {
  const { liveness } = assessLiveness(evidence, TRUSTED_OBSERVER)
  return liveness === 'gone' || liveness === 'silent' ? liveness : null
}
