import { commandOn, runName } from '../model/traits.ts'
import type { Policy } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import { humanizeAgo, humanizeDuration, type Millis } from '../model/time.ts'
import { blockedReason, type Decision } from '../model/verdict.ts'
import type { LivenessAssessment } from './liveness.ts'

/** Worst first; the only order. */
export const HEALTH_STATES = [
  'orphaned',
  'dead',
  'stalled',
  'unknown',
  'interrupted',
  'paused',
  'waiting',
  'healthy',
] as const
/**
 * How a live run is doing. `orphaned`: its workers are lost and none has continued it ·
 * `dead`: no progress, and older than `abandonAfter` · `stalled`: no progress or too long, with a worker present ·
 * `unknown`: nothing proves or disproves that it is worked on · `interrupted`: it has work left, and no worker came ·
 * `paused`: its source is · `waiting` to be started or continued · `healthy`.
 */
export type HealthState = (typeof HEALTH_STATES)[number]

/** Worst first. */
export const SEVERITIES = ['stuck', 'attention', 'ok'] as const
/** Exit code, colour and badge come from it: `ok` is 0, the others are 3. */
export type Severity = (typeof SEVERITIES)[number]

const SEVERITY_OF: Readonly<Record<HealthState, Severity>> = {
  orphaned: 'stuck',
  dead: 'stuck',
  stalled: 'stuck',
  unknown: 'attention',
  interrupted: 'attention',
  paused: 'ok',
  waiting: 'ok',
  healthy: 'ok',
}

/** How long a run may wait for its next worker: a deploy takes less. */
const TAKE_UP_MS = 60_000

export type Health = {
  readonly state: HealthState
  readonly severity: Severity
  readonly because: string
  /** When anything of the run last changed. */
  readonly since: Millis
  /** The command that continues or explains it. */
  readonly command: string
}

export type HealthFacts = {
  readonly run: Pick<
    Run,
    | 'id'
    | 'status'
    | 'counts'
    | 'lastActivityAt'
    | 'resumedAt'
    | 'reopenedAt'
    | 'acknowledgedAt'
    | 'paused'
    | 'traits'
  >
  readonly policy: Pick<
    Policy,
    'leaseMs' | 'maxSilenceMs' | 'abandonAfterMs' | 'staleAfterMs' | 'onStale'
  >
  readonly decision: Decision
  /** The decision when a lost owner counts as none: whether the run is dead by age. */
  readonly ageDecision: Decision
  /** The worker that has the run, with its progress; null when none is known. */
  readonly owner: LivenessAssessment | null
  /** A worker of its source is not lost: it can take the run up. */
  readonly hasWorker: boolean
  /** Of a table of targets of your own: it is as well as the worst of its rows, each of which has a worker of its own. */
  readonly unwellRows?: UnwellRows | undefined
  /** A supervisor has locked its source: no other worker can start it. */
  readonly isSupervised: boolean
  readonly now: Millis
}

/** Rows in progress that are lost or stalled, else those of unknown liveness. */
export type UnwellRows = LivenessAssessment & {
  /** When the worst of them last changed. */
  readonly since: Millis
}

/** Returns the health of a live run. Reads only its arguments. */
export function assessHealth(facts: HealthFacts): Health {
  const { run, unwellRows } = facts
  const found = classify(facts)
  const { state, because, action = 'explain' } = paused(facts, found) ?? found
  const command = action === 'recover' ? 'unstuck recover' : commandOn(action, runName(run))
  const severity = run.acknowledgedAt === null ? SEVERITY_OF[state] : 'ok'
  return { state, severity, because, since: unwellRows?.since ?? run.lastActivityAt, command }
}

type Classified = Pick<Health, 'state' | 'because'> & {
  readonly action?: 'recover' | 'clean' | 'explain'
}

/**
 * No worker is expected for a run of a paused source, whatever became of its workers. One that hangs on what it holds does not
 * end by itself: that stays stalled.
 */
function paused({ run, now }: HealthFacts, { state }: Classified): Classified | null {
  const held = run.counts.targets.in_progress
  if (!run.paused || (state === 'stalled' && held > 0)) return null
  const since = `its source was paused ${humanizeAgo(now - run.paused.at)}: ${run.paused.because}`
  const because = held > 0 ? `${since}; ${held} in progress` : since
  return { state: 'paused', because }
}

function classify(facts: HealthFacts): Classified {
  const { run, policy, decision, ageDecision, owner, now } = facts
  if (ageDecision.action === 'abandon') {
    const blocked = blockedReason(run, ageDecision)
    const because = withBlocked(ageDecision, blocked)
    return { state: 'dead', because, action: blocked === null ? 'clean' : 'explain' }
  }
  if (run.status === 'queued') {
    const worker = facts.isSupervised ? 'its supervisor' : 'a worker'
    const starter = run.traits.continuedBy === 'worker' ? worker : 'your own program'
    return { state: 'waiting', because: `it is queued and waits for ${starter}` }
  }
  if (run.status === 'interrupted') return interrupted(facts)
  if (facts.unwellRows) return withUnwellRows(run, facts.unwellRows)
  const idleMs = now - run.lastActivityAt
  if (!owner && decision.action !== 'fail' && !run.traits.ownerIsKnown)
    // An operator reopened it: no process has had it since.
    return decision.action === 'leave' ? interrupted(facts) : withoutKnownOwner(facts, idleMs)
  const isLost = !owner || owner.liveness === 'gone' || owner.liveness === 'silent'
  // Nothing of it is left to do: the next worker, start or recovery ends it.
  const hasClaims = run.counts.targets.in_progress > 0
  if (isLost && !hasClaims && decision.action === 'leave')
    return { state: 'waiting', because: decision.because }
  // Its last claim has ended, and its new status is about to be written.
  if (!owner && !hasClaims && idleMs <= policy.leaseMs) return interrupted(facts)
  if (isLost) return orphaned(facts)
  if (owner.liveness === 'unknown') return { state: 'unknown', because: owner.because }
  const isStalled = decision.action !== 'leave' || owner.liveness === 'stalled'
  const reason = decision.action === 'leave' && isStalled ? owner : decision
  // The prefix is for the error of what is ended.
  const because = reason.because.replace(/^timeout: /, '')
  return isStalled
    ? { state: 'stalled', because: withBlocked({ because }, blockedReason(run, decision)) }
    : { state: 'healthy', because }
}

/** Continues with the next worker; needs attention when none comes. Whether your own program is present is not known. */
function interrupted({ run, policy, hasWorker, now }: HealthFacts): Classified {
  const isOwn = run.traits.continuedBy === 'own-program'
  const forMs = now - Math.max(run.lastActivityAt, run.resumedAt ?? 0, run.reopenedAt ?? 0)
  const limitMs = Math.min(policy.maxSilenceMs, isOwn ? policy.abandonAfterMs : TAKE_UP_MS)
  if (hasWorker) {
    const because = 'it has work left, and a worker of its source is running'
    return { state: 'waiting', because }
  }
  if (forMs > limitMs) {
    return { state: 'interrupted', because: `not continued for ${humanizeDuration(forMs)}` }
  }
  const starter = isOwn ? 'your own program takes it up' : 'a worker starts'
  return { state: 'waiting', because: `it has work left and continues when ${starter}` }
}

/** The row does not name its owner: only its last change shows whether it is being worked on. */
function withoutKnownOwner({ run, policy }: HealthFacts, idleMs: number): Classified {
  const because = run.traits.isUndated
    ? 'neither its owner nor its last change is known'
    : `no owner is known, and it last changed ${humanizeAgo(idleMs)}`
  if (idleMs > policy.abandonAfterMs) return { state: 'orphaned', because }
  const isStale = policy.staleAfterMs !== null && idleMs > policy.staleAfterMs
  return { state: isStale && policy.onStale === 'keep' ? 'unknown' : 'healthy', because }
}

function withUnwellRows(run: HealthFacts['run'], rows: UnwellRows): Classified {
  const { liveness, because } = rows
  if (liveness === 'stalled' || liveness === 'unknown') return { state: liveness, because }
  return orphaned({ run, decision: { action: 'resume', because }, owner: rows })
}

function orphaned({
  run,
  decision,
  owner,
}: Pick<HealthFacts, 'run' | 'decision' | 'owner'>): Classified {
  const blocked = blockedReason(run, decision)
  const reason = owner ?? (decision.action === 'fail' ? decision : NO_WORKER)
  return {
    state: 'orphaned',
    because: withBlocked(reason, blocked),
    action: blocked === null ? 'recover' : 'explain',
  }
}

const NO_WORKER = { because: 'no worker of this source is left' }

function withBlocked({ because }: Pick<Decision, 'because'>, blocked: string | null): string {
  return blocked === null ? because : `${because}. ${blocked}`
}

/**
 * A worker that needs attention although its runs are healthy: it is lost or stalled and still holds targets. `isPaused`:
 * only of paused sources, which a lost worker does not keep from anything.
 */
export function workerSeverity(
  { liveness }: LivenessAssessment,
  targets: number,
  isPaused: boolean,
): Severity {
  const isFine = liveness === 'present' || (isPaused && liveness !== 'stalled')
  return targets > 0 && !isFine ? 'attention' : 'ok'
}

/** Returns the worst of these; `ok` when there is none. */
export function worstSeverity(severities: Iterable<Severity>): Severity {
  const found = new Set(severities)
  return SEVERITIES.find((one) => found.has(one)) ?? 'ok'
}
