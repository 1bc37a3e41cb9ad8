import type { Policy } from '../model/policy.ts'
import { isLive, type RunKind, type RunStatus } from '../model/run.ts'
import type { TargetStatus } from '../model/target.ts'
import type { RunTraits } from '../model/traits.ts'
import { humanizeDuration, type Millis } from '../model/time.ts'
import type { Action, Decision } from '../model/verdict.ts'
import { assessProgress, type LivenessAssessment } from './liveness.ts'

/** What a decision about a run, or about one target in it, is made from. */
export type Snapshot = {
  readonly run: {
    readonly status: RunStatus
    readonly kind: RunKind
    readonly createdAt: Millis
    readonly startedAt: Millis | null
    /** When it was last resumed. */
    readonly resumedAt: Millis | null
    readonly lastActivityAt: Millis
    readonly retries: number
    /** All targets are planned and none is open: the worker that finished the last one is about to settle it. */
    readonly isComplete: boolean
    /** Workers hold targets of it. */
    readonly isClaimed: boolean
    /** Targets of it wait for a worker, or are still being planned. */
    readonly hasWaiting: boolean
    /** Anything extracted, skipped or checkpointed, or a file in its output directory. */
    readonly hasProgress: boolean
    /** An operator reverted an earlier verdict: recovery leaves it alone until it has an owner again. */
    readonly isReopened: boolean
    /** Its source is paused, and nothing of it is in progress any more. */
    readonly isPaused: boolean
    readonly traits: RunTraits
  }
  /** Null for a decision about the run as a whole. */
  readonly target: {
    readonly status: TargetStatus
    readonly page: number
    readonly hasProgress: boolean
    readonly crashesAlone: number
    /** Errors and timeouts since its last page. */
    readonly errors: number
    readonly lastActivityAt: Millis
  } | null
  /** Null if no owner is known. */
  readonly owner: LivenessAssessment | null
  /** The owner is lost and counts as none: only the age matters. */
  readonly byAge?: boolean
  /** The owner is not proven dead and holds the lock of the source: its command may still run, and no other copy can start. */
  readonly mayStillRun?: boolean
}

/** Time before it was resumed does not count as silence: it was interrupted or paused. */
export function lastActivityOf(run: Pick<Snapshot['run'], 'lastActivityAt' | 'resumedAt'>): Millis {
  return Math.max(run.lastActivityAt, run.resumedAt ?? 0)
}

/** Decides what becomes of a run or target, for every interface. Reads only its arguments. */
export function decide(snapshot: Snapshot, policy: Policy, now: Millis): Decision {
  const { run, target, owner } = snapshot
  if (!isLive(run.status)) return verdict('leave', `the run has ended: ${run.status}`)
  if (run.isComplete)
    return verdict('leave', 'its targets have all ended; it is about to be settled')
  if (target && target.status !== 'in_progress')
    return verdict('leave', `the target is ${target.status}`)
  // It waits for an operator, however long: neither its age nor its silence means anything.
  if (run.isPaused) return verdict('wait', 'its source is paused')
  if (!owner || snapshot.byAge) return withoutOwner(snapshot, policy, now)
  const lastActivityAt = target?.lastActivityAt ?? lastActivityOf(run)
  const assessment = assessProgress(owner, now - lastActivityAt, policy.maxSilenceMs)
  switch (assessment.liveness) {
    case 'unknown':
      return verdict('leave', assessment.because)
    case 'present':
    case 'stalled':
      return withOwnerPresent(snapshot, assessment, policy, now)
    case 'gone':
    case 'silent':
      return withOwnerLost(snapshot, assessment, policy)
  }
}

function withOwnerPresent(
  snapshot: Snapshot,
  owner: LivenessAssessment,
  policy: Policy,
  now: Millis,
): Decision {
  const { run, target } = snapshot
  const ranFor = now - (run.resumedAt ?? run.startedAt ?? run.createdAt)
  // A crawl overruns as a whole; its targets are stopped with it, not one by one.
  const isWhole = target === null || run.kind === 'single'
  const isAtWork = isWhole && run.status === 'running'
  if (isAtWork && policy.maxDurationMs !== null && ranFor > policy.maxDurationMs) {
    const limit = humanizeDuration(policy.maxDurationMs)
    const why = `timeout: running for ${humanizeDuration(ranFor)}, longer than maxDuration ${limit}`
    return verdict(policy.onStalled, why)
  }
  if (owner.liveness === 'present') return verdict('leave', owner.because)
  // A crawl makes no progress because its targets make none: each of them gets its own verdict.
  const isAlert = policy.onStalled === 'alert' || (target === null && run.kind === 'crawl')
  if (isAlert) return verdict('alert', owner.because)
  const why = `timeout: ${owner.because}`
  if (policy.onStalled === 'resume' && (target?.errors ?? 0) >= policy.retries) {
    return verdict('fail', `${why}, again after ${target?.errors ?? 0} errors or timeouts`)
  }
  return verdict(policy.onStalled, why)
}

function withOwnerLost(snapshot: Snapshot, owner: LivenessAssessment, policy: Policy): Decision {
  const { run, target, mayStillRun = false } = snapshot
  // Silence does not prove that an unrecorded owner has ended.
  const isUnproven = !run.traits.ownerIsKnown && owner.liveness === 'silent'
  const end = isUnproven ? 'no sign of life' : 'process ended unexpectedly'
  if (target && target.crashesAlone >= policy.maxCrashes) {
    return verdict(
      'park',
      `it took down ${target.crashesAlone} workers that held nothing else; ${owner.because}`,
    )
  }
  // A crawl continues whatever becomes of single targets, which get their own verdicts.
  const isWhole = target === null && run.kind === 'crawl'
  if (hasAnyProgress(run, target)) {
    if (isWhole && run.isClaimed && policy.onCrash !== 'resume')
      return withTargetsEnded(run, owner, policy.onCrash)
    if (policy.onCrash === 'resume' || isWhole) {
      return verdict('resume', `${owner.because}; continues ${describeResumePoint(target)}`)
    }
    return verdict(policy.onCrash, `${end}: ${owner.because}`)
  }
  if (run.kind === 'crawl') return verdict('replan', `${owner.because}; no page was done yet`)
  // The same run, so that a command that still runs can continue it.
  if (mayStillRun) return verdict('resume', `${owner.because}; its command may still run`)
  if (run.retries < policy.runRetries)
    return verdict('retry', `${owner.because}; nothing was done yet`)
  const times = run.retries === 0 ? '' : `, ${run.retries + 1} times`
  return verdict('fail', `${end} with nothing done${times}: ${owner.because}`)
}

/** A crawl goes on with the targets that its lost workers did not hold; without any it ends with those that they held. */
function withTargetsEnded(
  { hasWaiting }: Snapshot['run'],
  { because }: LivenessAssessment,
  onCrash: 'fail' | 'hold',
): Decision {
  const fate = `${onCrash === 'fail' ? 'fails' : 'holds'} its targets in progress that have a saved page`
  const why = `${because}; onCrash: '${onCrash}' ${fate}`
  return hasWaiting
    ? verdict('resume', `${why}, and it continues with the others`)
    : verdict(onCrash, why)
}

function describeResumePoint(target: Snapshot['target']): string {
  if (!target) return 'from its last saved pages'
  if (target.page > 0) return `after page ${target.page}`
  return target.hasProgress ? 'from its last checkpoint' : 'with what it has'
}

/** For a target of a crawl its own pages count; a run with one target may also have reported progress. */
function hasAnyProgress(run: Snapshot['run'], target: Snapshot['target']): boolean {
  if (target && run.kind === 'crawl') return target.hasProgress
  return run.hasProgress || (target?.hasProgress ?? false)
}

function withoutOwner({ run, owner }: Snapshot, policy: Policy, now: Millis): Decision {
  const age = now - run.createdAt
  const idle = now - run.lastActivityAt
  const noOwner =
    !run.traits.ownerIsKnown && run.status === 'running' ? 'no owner is known' : 'no worker has it'
  if (run.isReopened)
    return verdict('leave', 'an operator reopened it, and no worker has had it since')
  // Only a run with status running can be stale: a queued or interrupted run has no owner.
  const canBeStale = run.status === 'running' && !run.traits.isUndated
  if (canBeStale && policy.staleAfterMs !== null && policy.onStale === 'fail') {
    const limit = humanizeDuration(policy.staleAfterMs)
    const unchanged = humanizeDuration(idle)
    return idle > policy.staleAfterMs
      ? verdict('fail', `no known owner for ${unchanged}, longer than staleAfter ${limit}`)
      : verdict('wait', `${noOwner}; unchanged for ${unchanged}, failed after ${limit}`)
  }
  if (run.hasProgress) return verdict('resumable', `${noOwner}, but it has progress: kept`)
  if (run.traits.isUndated) return verdict('wait', `${noOwner}; its age is not known`)
  // A backlog may be as old as it likes: it has not been begun, so nothing of it was lost.
  if (run.status === 'queued')
    return verdict('wait', `${noOwner}; it has been queued for ${humanizeDuration(age)}`)
  if (age <= policy.abandonAfterMs) {
    return verdict(
      'wait',
      `${noOwner}; ${humanizeDuration(age)} old, dead after ${humanizeDuration(policy.abandonAfterMs)}`,
    )
  }
  const why = owner ? `${owner.because}; it is` : `${noOwner},`
  return verdict('abandon', `${why} ${humanizeDuration(age)} old, no progress and no checkpoint`)
}

function verdict(action: Action, because: string): Decision {
  return { action, because }
}
