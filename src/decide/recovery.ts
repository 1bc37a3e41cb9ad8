import type { Policy } from '../model/policy.ts'
import { isLive, type RunKind, type RunStatus } from '../model/run.ts'
import type { TargetStatus } from '../model/target.ts'
import { inWords, type Millis } from '../model/time.ts'
import type { Action, Decision } from '../model/verdict.ts'
import type { Reading } from './sign.ts'

/** All that is known of a run, or of one target in it, at the moment of judgement. */
export type Snapshot = {
  readonly run: {
    readonly status: RunStatus
    readonly kind: RunKind
    readonly createdAt: Millis
    readonly startedAt: Millis | null
    readonly lastActivityAt: Millis
    readonly retries: number
    /** Anything extracted, skipped or checkpointed, or a file in its output directory. */
    readonly hasProgress: boolean
    /** A person took back an earlier verdict: nothing automatic touches it until it has an owner again. */
    readonly reverted: boolean
  }
  /** Null when the run as a whole is judged. */
  readonly target: {
    readonly status: TargetStatus
    readonly page: number
    readonly hasProgress: boolean
    readonly crashesAlone: number
    readonly lastActivityAt: Millis
  } | null
  /** Null when nobody is known to have it. */
  readonly owner: Reading | null
}

/** The one judgement behind every door. Reads only its arguments. */
export function decide(snapshot: Snapshot, policy: Policy, now: Millis): Decision {
  const { run, target, owner } = snapshot
  if (!isLive(run.status)) return verdict('leave', `the run is ${run.status}`)
  if (target && target.status !== 'in_progress')
    return verdict('leave', `the target is ${target.status}`)
  if (!owner) return withoutOwner(snapshot, policy, now)
  switch (owner.sign) {
    case 'unknown':
      return verdict('leave', owner.because)
    case 'present':
    case 'stalled':
      return withOwnerPresent(snapshot, owner, policy, now)
    case 'gone':
    case 'silent':
      return withOwnerLost(snapshot, owner, policy)
  }
}

function withOwnerPresent(
  { run, target }: Snapshot,
  owner: Reading,
  policy: Policy,
  now: Millis,
): Decision {
  const ranFor = now - (run.startedAt ?? run.createdAt)
  if (policy.maxDurationMs !== null && ranFor > policy.maxDurationMs) {
    const why = `timeout: running for ${inWords(ranFor)}, longer than maxDuration ${inWords(policy.maxDurationMs)}`
    return verdict(policy.onStalled === 'alert' ? 'alert' : 'stop', why)
  }
  const still = now - (target ?? run).lastActivityAt
  if (still > policy.maxSilenceMs) {
    const action: Action = policy.onStalled === 'alert' ? 'alert' : policy.onStalled
    return verdict(action, `timeout: ${owner.because}, but no progress for ${inWords(still)}`)
  }
  return verdict('leave', owner.because)
}

function withOwnerLost({ run, target }: Snapshot, owner: Reading, policy: Policy): Decision {
  if (target && target.crashesAlone >= policy.maxCrashes) {
    return verdict(
      'park',
      `it took down ${target.crashesAlone} workers that held nothing else; ${owner.because}`,
    )
  }
  if (target ? target.hasProgress : run.hasProgress) {
    if (policy.onCrash === 'resume') {
      return verdict('resume', `${owner.because}; goes on after page ${target?.page ?? 0}`)
    }
    return verdict(policy.onCrash, `process ended unexpectedly: ${owner.because}`)
  }
  if (run.kind === 'crawl') return verdict('replan', `${owner.because}; no page was done yet`)
  return run.retries < policy.maxRetries
    ? verdict('retry', `${owner.because}; nothing was done yet`)
    : verdict(
        'fail',
        `process ended unexpectedly with nothing done, ${run.retries + 1} times: ${owner.because}`,
      )
}

function withoutOwner({ run }: Snapshot, policy: Policy, now: Millis): Decision {
  const age = now - run.createdAt
  if (run.reverted) return verdict('leave', 'a person took back an earlier verdict')
  if (policy.onStale === 'fail' && policy.staleAfterMs !== null && age > policy.staleAfterMs) {
    return verdict(
      'fail',
      `no known owner for ${inWords(age)}, longer than staleAfter ${inWords(policy.staleAfterMs)}`,
    )
  }
  if (run.hasProgress) return verdict('resumable', 'nobody works on it, but it has progress: kept')
  if (age <= policy.abandonAfterMs) {
    return verdict(
      'wait',
      `nobody works on it; ${inWords(age)} old, dead after ${inWords(policy.abandonAfterMs)}`,
    )
  }
  return verdict(
    'abandon',
    `nobody works on it, ${inWords(age)} old, no progress and no checkpoint`,
  )
}

function verdict(action: Action, because: string): Decision {
  return { action, because }
}
