import {
  assessHealth,
  workerSeverity,
  worstSeverity,
  type Health,
  type Severity,
} from '../decide/health.ts'
import { decide, type Snapshot } from '../decide/recovery.ts'
import {
  assessLiveness,
  assessProgress,
  type ObserverHealth,
  type LivenessAssessment,
} from '../decide/liveness.ts'
import type { RunId, WorkerId } from '../model/id.ts'
import { policyForGroup, type Policy } from '../model/policy.ts'
import type { PolicyOf } from '../model/policy-of.ts'
import { countOpenTargets, type Run } from '../model/run.ts'
import type { OnlyTarget, Target } from '../model/target.ts'
import type { Millis } from '../model/time.ts'
import type { Decision, RunEvidence } from '../model/verdict.ts'
import type { Holding, Store, UnreadableTable, WorkerObservation } from '../store/store.ts'
import type { OperatorContext } from './context.ts'

/** Whether anything of a run is worth keeping. */
export function hasProgress({ counts, progress, artifacts }: Run): boolean {
  const { pages, itemsNew, itemsUpdated, skipped } = counts
  return pages + itemsNew + itemsUpdated + skipped + artifacts > 0 || (progress?.done ?? 0) > 0
}

/** The part of a run that `decide` reads. */
export function runSnapshot(run: Run): Snapshot['run'] {
  const { status, kind, createdAt, startedAt, resumedAt, lastActivityAt, retries, traits } = run
  return {
    status,
    kind,
    createdAt,
    startedAt,
    resumedAt,
    lastActivityAt,
    retries,
    isComplete: run.plannedAt !== null && countOpenTargets(run.counts) === 0,
    hasProgress: hasProgress(run),
    isReopened: run.reopenedAt !== null,
    traits,
  }
}

/** A worker and what is known of it. */
export type Owner = WorkerObservation & { readonly assessment: LivenessAssessment }

export type AssessedRun<T extends OnlyTarget = OnlyTarget> = {
  readonly run: Run
  /** The one target of a run that has only one. */
  readonly target: T | null
  readonly policy: Policy
  readonly decision: Decision
  /** The decision when a lost owner counts as none: for cleaning, where only the age matters. */
  readonly ageDecision: Decision
  /** The worker with the best evidence of being alive; null when none is known. */
  readonly owner: Owner | null
  readonly evidence: RunEvidence
  readonly health: Health
}

/** A worker that has not ended, with the targets it holds. */
export type AssessedWorker = Owner & {
  readonly targets: number
  /** The runs of these targets. */
  readonly runs: ReadonlySet<RunId>
  readonly severity: Severity
}

/** All that one answer reports: one clock reading, one list of live runs, one list of workers. */
export type Assessment = {
  readonly now: Millis
  readonly runs: readonly AssessedRun[]
  readonly workers: readonly AssessedWorker[]
  readonly observations: readonly WorkerObservation[]
  /** Tables of your own that could not be read: their rows were not assessed. */
  readonly unreadable: readonly UnreadableTable[]
  /** Of the runs, the workers and the tables. */
  readonly severity: Severity
}

export type AssessContext = Pick<OperatorContext, 'store' | 'policyOf' | 'observer'>

/** Reads and assesses every live run and every worker: behind status, top, HTTP, metrics, alerts, doctor, summary and recover. */
export async function assess(context: AssessContext): Promise<Assessment> {
  const { store } = context
  const [live, observations, holdings, now] = await Promise.all([
    store.liveRuns(),
    store.observations(),
    store.holdings(),
    store.now(),
  ])
  const runs = assessRuns(live, observations, { ...context, now })
  const workers = assessWorkers(observations, holdings, runs, { ...context, now })
  const { unreadable } = store
  const severity = worstSeverity([
    ...runs.map(({ health }) => health.severity),
    ...workers.map((one) => one.severity),
    ...unreadable.map(() => 'attention' as const),
  ])
  return { now, runs, workers, observations, unreadable, severity }
}

type AssessOptions = {
  readonly now: Millis
  readonly observer: ObserverHealth
  readonly policyOf: PolicyOf
}

/** Applies `decide` to each of these runs as a whole. `observations`: every worker that has not ended. */
function assessRuns<T extends OnlyTarget>(
  live: readonly { readonly run: Run; readonly target: T | null }[],
  observations: readonly WorkerObservation[],
  options: AssessOptions,
): AssessedRun<T>[] {
  const owners = observations.map((observation): Owner => ({
    ...observation,
    assessment: assessLiveness(observation.evidence, options.observer),
  }))
  const byId = new Map(owners.map((owner) => [owner.worker.id, owner]))
  // An owner is no evidence about other live runs of the same source.
  const byCrawl = Map.groupBy(owners, ({ worker, run }) => run ?? worker.source)
  return live.map((one) => {
    const { run } = one
    const owner =
      run.kind === 'crawl'
        ? mostAlive(byCrawl.get(run.traits.isOnlyLive ? run.source : run.id) ?? [])
        : (run.owner !== null && byId.get(run.owner)) || null
    return assessOne(one, owner, options)
  })
}

function assessOne<T extends OnlyTarget>(
  { run, target }: { readonly run: Run; readonly target: T | null },
  owner: Owner | null,
  { now, policyOf }: AssessOptions,
): AssessedRun<T> {
  const policy = policyOf(run)
  const held = owner && target?.status === 'in_progress' ? targetSnapshot(target) : null
  const snapshot = { run: runSnapshot(run), target: held, owner: owner?.assessment ?? null }
  const decision = decide(snapshot, policy, now)
  const lost = owner !== null && isLost(owner.assessment)
  const ageDecision = lost
    ? decide({ ...snapshot, target: null, owner: null }, policy, now)
    : decision
  const idleMs = now - (held ?? run).lastActivityAt
  const shownOwner = owner && {
    ...owner,
    assessment: assessProgress(owner.assessment, idleMs, policy.maxSilenceMs),
  }
  const assessment = shownOwner?.assessment ?? null
  return {
    run,
    target,
    policy,
    decision,
    ageDecision,
    owner: shownOwner,
    evidence: evidenceOf(run, owner, now),
    health: assessHealth({ run, policy, decision, ageDecision, owner: assessment, now }),
  }
}

function assessWorkers(
  observations: readonly WorkerObservation[],
  holdings: readonly Holding[],
  runs: readonly AssessedRun[],
  { now, observer }: AssessOptions,
): AssessedWorker[] {
  const byWorker = Map.groupBy(holdings, ({ worker }) => worker)
  const policies = new Map(runs.map(({ run, policy }) => [run.id, policy]))
  return observations.map((observation) => {
    const held = byWorker.get(observation.worker.id) ?? []
    const targets = held.reduce((sum, one) => sum + one.targets, 0)
    const liveness = assessLiveness(observation.evidence, observer)
    const assessment = withStalledTarget(liveness, held, policies, now)
    const severity = workerSeverity(assessment, targets)
    const heldRuns = new Set(held.map(({ run }) => run))
    return { ...observation, assessment, targets, runs: heldRuns, severity }
  })
}

/** A worker with a target that has made no progress for longer than its policy allows is stalled. */
function withStalledTarget(
  assessment: LivenessAssessment,
  held: readonly Holding[],
  policies: ReadonlyMap<RunId, Policy>,
  now: Millis,
): LivenessAssessment {
  const stalled = held
    .map(({ run, policy, group, lastActivityAt }) => {
      const { maxSilenceMs } = policyForGroup(policies.get(run) ?? policy, group)
      return { idleMs: now - lastActivityAt, maxSilenceMs }
    })
    .filter(({ idleMs, maxSilenceMs }) => idleMs > maxSilenceMs)
    .toSorted((a, b) => b.idleMs - a.idleMs)[0]
  return stalled ? assessProgress(assessment, stalled.idleMs, stalled.maxSilenceMs) : assessment
}

/** The part of a target that `decide` reads. */
export function targetSnapshot(target: OnlyTarget): NonNullable<Snapshot['target']> {
  return { ...target, hasProgress: target.seq > 0 }
}

/** Not alive, as far as one can know. */
export function isLost({ liveness }: Pick<LivenessAssessment, 'liveness'>): boolean {
  return liveness === 'gone' || liveness === 'silent'
}

function mostAlive(owners: readonly Owner[]): Owner | null {
  return owners.find(({ assessment }) => !isLost(assessment)) ?? owners[0] ?? null
}

function evidenceOf(run: Run, owner: Owner | null, now: Millis): RunEvidence {
  const { pages, itemsNew, itemsUpdated, itemsUnchanged, skipped } = run.counts
  return {
    ageMs: now - run.createdAt,
    idleMs: now - run.lastActivityAt,
    pages,
    extracted: itemsNew + itemsUpdated,
    skipped: skipped + itemsUnchanged,
    hasProgress: hasProgress(run),
    owner: owner?.evidence ?? null,
  }
}

/** Assesses one run, read now. `self`: a worker that does not count as its owner. */
export async function assessRun(
  { store, policyOf, observer }: AssessContext,
  run: Run,
  { self }: { readonly self?: WorkerId | undefined } = {},
): Promise<AssessedRun<Target>> {
  const [target] =
    run.kind === 'single' ? (await store.targets(run.id, { limit: 1, whole: true })).items : []
  const live = { run, target: target ? await targetForDecision(store, target) : null }
  const now = await store.now()
  const observations = (await store.observations()).filter(({ worker }) => worker.id !== self)
  return assessRuns([live], observations, { now, observer, policyOf })[0]!
}

/** More than any process holds at once. */
export const CLAIMS_MAX = 1_000

/** A live claim is not shown as a crash; a verdict counts it, unless a page was saved since. */
export async function targetForDecision(store: Store, target: Target): Promise<Target> {
  if (target.status !== 'in_progress' || target.worker === null) return target
  const claims = await store.claimsOf(target.worker, null, CLAIMS_MAX)
  const found = claims.find((one) => one.target.id === target.id)?.target
  if (!found || found.seq !== target.seq) return target
  // Recovery reads long texts cut.
  const { cut: _, ...held } = found
  return { ...held, next: target.next, cursor: target.cursor, lastError: target.lastError }
}
