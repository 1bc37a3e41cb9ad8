import { shortId, type RunId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import type { AdoptedRef, AdoptedRun, RunStatus } from '../../core/model/run.ts'
import { humanizeDuration, type Millis } from '../../core/model/time.ts'
import { blockedReason, type Decision } from '../../core/model/verdict.ts'
import { unstuckCommand } from '../../core/model/shell-command.ts'
import type { AlertFacts } from './decide.ts'
import type { LivenessAssessment } from '../../core/decide/liveness.ts'

/** A live run as it was judged. */
export type LiveRunFacts = {
  readonly run: {
    readonly id: RunId
    readonly source: string
    readonly status: RunStatus
    readonly createdAt: Millis
    readonly startedAt: Millis | null
    readonly resumedAt: Millis | null
    readonly lastActivityAt: Millis
    readonly adopted?: AdoptedRef & Pick<AdoptedRun, 'cannot'>
  }
  readonly policy: Pick<
    Policy,
    'maxDurationMs' | 'maxSilenceMs' | 'autoClean' | 'leaseMs' | 'staleAfterMs' | 'abandonAfterMs'
  >
  /** Who works on it, with what its progress says; null when nobody is known to. */
  readonly owner: LivenessAssessment | null
  readonly decision: Decision
  /** The verdict when whoever is lost counts as nobody: whether it is dead by age. */
  readonly decisionByAge: Decision
}

/** Recovery takes a second or two where anybody is there to do it. Longer than this, nobody is. */
const UNRECOVERED_MS = 60_000
const ADOPTED_UNRECOVERED_MS = 2 * 60_000

/** The worst that can be said of a live run, if people should hear of it. Reads only its arguments. */
export function findRunProblem(
  facts: LiveRunFacts,
  now: Millis,
): AlertFacts['runs'][number] | null {
  const { run, policy, owner, decision, decisionByAge } = facts
  const short = shortId(run.id)
  const say = (
    what: 'dead' | 'silent' | 'overrun',
    because: string,
    command = unstuckCommand('explain', [short]),
  ) => ({ run: run.id, source: run.source, what, because, command })
  if (decisionByAge.action === 'abandon') {
    const cannot = blockedReason(run, decisionByAge)
    if (cannot !== null) return say('dead', `${decisionByAge.because}. ${cannot}`)
    return policy.autoClean
      ? null
      : say('dead', decisionByAge.because, unstuckCommand('clean', [short]))
  }
  const idleMs = now - run.lastActivityAt
  if (run.status === 'interrupted') {
    if (idleMs <= policy.maxSilenceMs) return null
    return say('silent', `interrupted ${humanizeDuration(idleMs)} ago, and nobody has taken it up`)
  }
  if (run.status !== 'running') return null
  if (owner === null || owner.liveness === 'gone' || owner.liveness === 'silent') {
    if (idleMs <= alertDelayMs(facts)) return null
    if (run.adopted && decision.action === 'resumable')
      return say(
        'silent',
        `nobody is known to work on it, and it stood still for ${humanizeDuration(idleMs)}`,
      )
    const cannot = blockedReason(run, decision)
    if (cannot !== null) return say('silent', `${decision.because}. ${cannot}`)
    const because = owner?.because ?? 'no worker of this source is left'
    return say(
      'silent',
      `${run.adopted ? decision.because : because}; not recovered yet`,
      'unstuck recover',
    )
  }
  const ranForMs = now - (run.resumedAt ?? run.startedAt ?? run.createdAt)
  if (policy.maxDurationMs !== null && ranForMs > policy.maxDurationMs)
    return say('overrun', decision.because)
  return owner.liveness === 'stalled' ? say('silent', owner.because) : null
}

/** A row of a user's own table is looked at every minute; where nobody is known to own it, it may stand still for longer. */
function alertDelayMs({ run, policy, owner, decision }: LiveRunFacts): number {
  if (!run.adopted) return UNRECOVERED_MS
  if (owner) return policy.leaseMs + ADOPTED_UNRECOVERED_MS
  return decision.action === 'fail' && policy.staleAfterMs !== null
    ? policy.staleAfterMs + ADOPTED_UNRECOVERED_MS
    : policy.abandonAfterMs
}
