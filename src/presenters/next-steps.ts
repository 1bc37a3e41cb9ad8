import type { Policy } from '../core/model/policy.ts'
import { isLive } from '../core/model/run.ts'
import type { TargetStatus } from '../core/model/target.ts'
import { humanizeDuration, type Millis } from '../core/model/time.ts'
import type { Decision } from '../core/model/verdict.ts'
import type { Snapshot } from '../core/decide/recovery.ts'

export type NextSteps = {
  /** The settings that led to the verdict, or will to the next one. */
  readonly policy: readonly (keyof Policy)[]
  /** Changes that would lead to another verdict, in sentences. */
  readonly changes: readonly string[]
}

/** Explains what a verdict depends on and what comes next. Reads only its arguments. */
export function explainNextSteps(
  snapshot: Snapshot,
  { action }: Decision,
  policy: Policy,
  now: Millis,
): NextSteps {
  const { run, target, owner } = snapshot
  const byItself = run.traits.recoveredBy === 'server' ? RECOVERED_BY_SERVER : RECOVERED_BY_WORKER
  const isOwnProgram = run.traits.continuedBy === 'own-program'
  const takenUp = isOwnProgram ? CONTINUED_BY_OWN_PROGRAM : CONTINUED_BY_WORKER
  // It decides when an interrupted run needs attention.
  const silence = run.status === 'interrupted' ? (['maxSilenceMs'] as const) : []
  if (run.isPaused && isLive(run.status)) return { policy: [], changes: [PAUSED] }
  switch (action) {
    case 'leave':
      if (target && target.status !== 'in_progress') {
        return { policy: [], changes: nextStepsOfTarget(target.status, run) }
      }
      if (!isLive(run.status)) return { policy: [], changes: [isOwnProgram ? ENDED_ROW : ENDED] }
      if (run.isComplete) return { policy: [], changes: [COMPLETE] }
      return owner
        ? nextStepsWhileAlive(snapshot, policy, now)
        : { policy: [], changes: [isOwnProgram ? REOPENED_ROW : REOPENED] }
    case 'alert':
      return {
        policy: ['maxSilenceMs', 'maxDurationMs', 'onStalled'],
        changes: [
          `${isOwnProgram ? 'Any progress' : 'A saved page'} makes it healthy again, unless maxDuration has passed.`,
          policy.onStalled === 'alert'
            ? "With `onStalled: 'resume'` or `'fail'` in its policy it would be stopped automatically; now it only raises an alert."
            : `Its targets without progress are stopped one by one: \`onStalled: '${policy.onStalled}'\` applies.`,
        ],
      }
    case 'resume':
    case 'replan':
      return {
        policy: ['leaseMs', 'onCrash', 'maxCrashes'],
        changes: [
          // No worker holds a run that is not running, so there is nothing to release.
          run.status === 'running' ? byItself : takenUp,
          ...(isOwnProgram
            ? []
            : [
                `After ${policy.maxCrashes} workers lost on a target alone, without a page in between, it is parked instead.`,
              ]),
        ],
      }
    case 'retry':
      return {
        policy: ['leaseMs', 'runRetries'],
        changes: [
          byItself,
          'It becomes failed and a new run is queued in its place; had it saved a page, it would continue instead.',
        ],
      }
    case 'fail':
      return {
        policy: ['onCrash', 'runRetries', 'onStalled', 'staleAfterMs', 'onStale'],
        changes: [
          byItself,
          isOwnProgram
            ? 'Saved items stay, and `unstuck revert` reverts it.'
            : 'Saved items stay. `unstuck revert` reverts it, `unstuck resume` opens it again.',
        ],
      }
    case 'park':
    case 'hold':
      return {
        policy: ['maxCrashes', 'onCrash'],
        changes: [
          byItself,
          'From then on it changes only when `unstuck unpark` puts it back in the queue.',
        ],
      }
    case 'wait': {
      if (run.status === 'queued') return { policy: [], changes: [takenUp] }
      if (run.traits.isUndated) return { policy: [], changes: [takenUp, UNDATED] }
      const left = policy.abandonAfterMs - (now - run.createdAt)
      const stale = msUntilStale(run, policy, now)
      return {
        policy:
          stale === null
            ? [...silence, 'abandonAfterMs']
            : ['staleAfterMs', 'onStale', 'abandonAfterMs'],
        changes: [
          takenUp,
          stale === null
            ? `If none does, it counts as dead in ${humanizeDuration(left)}.`
            : `If it makes no progress for another ${humanizeDuration(stale)}, it is failed.`,
        ],
      }
    }
    case 'abandon':
      return {
        policy: ['abandonAfterMs', 'autoClean'],
        changes: [
          isOwnProgram
            ? 'It may still be continued; after any progress it is no longer cleaned.'
            : 'A worker that starts may still take it up; after a saved page it is no longer cleaned.',
          policy.autoClean
            ? `Its policy has autoClean: ${run.traits.recoveredBy === 'server' ? '`unstuck serve`' : 'any worker that runs'} marks it within a minute.`
            : `\`unstuck clean\` ${isOwnProgram ? 'ends it in your table' : 'marks it as “Timeout – auto-cleaned”'}; nothing is deleted, and \`unstuck revert\` reverts it.`,
        ],
      }
    case 'resumable':
      return {
        policy: [...silence, 'abandonAfterMs'],
        changes: [
          isOwnProgram
            ? 'It is never cleaned by age. Your own program continues it, or ends it.'
            : 'It is never cleaned. A worker that starts continues from its last saved pages.',
        ],
      }
  }
}

const RECOVERED_BY_WORKER =
  'Any worker that runs does this within a second; `unstuck recover` does it now.'
const RECOVERED_BY_SERVER =
  '`unstuck serve` does this within a minute; `unstuck recover` does it now.'
const PAUSED = 'It goes on when `unstuck unpause SOURCE` ends the pause of its source.'
const CONTINUED_BY_OWN_PROGRAM = 'Your own program continues it, or takes it up.'
const CONTINUED_BY_WORKER = 'A worker that starts takes it up.'
const ENDED_ROW = 'It has ended: only an operator or your own program opens it again.'
const ENDED = 'It has ended: only an operator opens it again (`unstuck resume`, `unstuck retry`).'
const COMPLETE =
  'Nothing of it is left to do: its worker, the next start, or `unstuck recover` ends it.'
const REOPENED = 'It is not ended automatically until a worker has claimed it again.'
const UNKNOWN =
  'The next sign of life makes it healthy again. Without one, recovery decides when it can tell.'
const UNDATED = 'It never counts as dead by age: map a column with a time, such as `startedAt`.'

const REOPENED_ROW = 'It is not ended automatically until it has made progress.'

/** True for the sentence that only names what continues a run. */
export function isContinuation(change: string): boolean {
  return change === CONTINUED_BY_WORKER || change === CONTINUED_BY_OWN_PROGRAM
}

/** How long a running run without a known owner may still be idle; null: no limit. */
function msUntilStale(run: Snapshot['run'], policy: Policy, now: Millis): number | null {
  if (run.status !== 'running' || policy.staleAfterMs === null || policy.onStale !== 'fail')
    return null
  return policy.staleAfterMs - (now - run.lastActivityAt)
}

/** A target that no worker holds, by what it waits for. */
function nextStepsOfTarget(
  status: Exclude<TargetStatus, 'in_progress'>,
  { status: runStatus, traits }: Snapshot['run'],
): string[] {
  const isRunLive = isLive(runStatus)
  const isOwnProgram = traits.continuedBy === 'own-program'
  const also = isRunLive ? '' : ' and opens its run again'
  switch (status) {
    case 'planned':
      if (isOwnProgram) return ['Your own program takes it up when its turn comes.']
      return isRunLive
        ? ['A worker claims it when its turn comes.']
        : ['Its run has ended: `unstuck resume` opens it again, and this target with it.']
    case 'done':
      if (isOwnProgram) return ['It is done.']
      return [`It is done. \`unstuck rewind\` fetches its pages again${also}.`]
    case 'failed':
      return [`It stays as it is until \`unstuck reset-failed\` tries it again${also}.`]
    case 'stuck':
    case 'parked':
      return [`It stays as it is until \`unstuck unpark\` puts it back in the queue${also}.`]
  }
}

function nextStepsWhileAlive(
  { run, target, owner }: Snapshot,
  policy: Policy,
  now: Millis,
): NextSteps {
  if (owner?.liveness === 'unknown') return { policy: ['leaseMs'], changes: [UNKNOWN] }
  const idle = now - (target ?? run).lastActivityAt
  const left = policy.maxSilenceMs - idle
  const then =
    policy.onStalled === 'alert'
      ? 'an alert is raised'
      : `\`onStalled: '${policy.onStalled}'\` applies`
  const dies = run.traits.ownerIsKnown
    ? `If its worker dies, that is known within a second on this host; if it falls silent, after ${humanizeDuration(policy.leaseMs)}.`
    : `If it falls silent, that is known after ${humanizeDuration(policy.leaseMs)}.`
  const stands =
    left > 0
      ? `If it saves nothing for another ${humanizeDuration(left)}, it is stalled, and ${then}.`
      : `It has saved nothing for ${humanizeDuration(idle)}: ${then}.`
  return {
    policy: ['leaseMs', 'maxSilenceMs', 'maxDurationMs', 'onStalled'],
    // A row without a column for progress cannot be stalled.
    changes: Number.isFinite(left) ? [dies, stands] : [dies],
  }
}
