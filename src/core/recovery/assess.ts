import {
  assessHealth,
  worstSeverity,
  type Health,
  type UnwellRows,
  type Severity,
} from '../decide/health.ts'
import { decide, lastActivityOf, type Snapshot } from '../decide/recovery.ts'
import {
  assessLiveness,
  assessProgress,
  isProvenDead,
  type ObserverHealth,
  type LivenessAssessment,
} from '../decide/liveness.ts'
import { decideSourceLock } from '../decide/source-lock.ts'
import { isLocalProcess } from '../host/identity.ts'
import type { RunId, WorkerId } from '../model/id.ts'
import type { Policy } from '../model/policy.ts'
import type { PolicyOf } from '../model/policy-of.ts'
import { countOpenTargets, type Run } from '../model/run.ts'
import type { SourceLock } from '../model/source-lock.ts'
import type { OnlyTarget, Target } from '../model/target.ts'
import type { Millis } from '../model/time.ts'
import type { Decision, RunEvidence } from '../model/verdict.ts'
import type { Store, UnreadableTable, WorkerObservation } from '../store/store.ts'
import { assessWorkers, findUnwellRows, type AssessedWorker } from './assess-workers.ts'
import type { OperatorContext } from './context.ts'

/** Whether anything of a run is worth keeping. */
export function hasProgress({ counts, progress, artifacts }: Run): boolean {
  const { pages, itemsNew, itemsUpdated, skipped } = counts
  return pages + itemsNew + itemsUpdated + skipped + artifacts > 0 || (progress?.done ?? 0) > 0
}

/** The part of a run that `decide` reads. */
export function runSnapshot(run: Run): Snapshot['run'] {
  return {
    ...run,
    isComplete: run.plannedAt !== null && countOpenTargets(run.counts) === 0,
    isClaimed: run.counts.targets.in_progress > 0,
    hasWaiting: run.plannedAt === null || run.counts.targets.planned > 0,
    hasProgress: hasProgress(run),
    isReopened: run.reopenedAt !== null,
    isPaused: run.paused !== null && run.counts.targets.in_progress === 0,
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

/** All that one answer reports: one clock reading, one list of live runs, one list of workers. */
export type Assessment = {
  readonly now: Millis
  readonly runs: readonly AssessedRun[]
  readonly workers: readonly AssessedWorker[]
  /** Read before the observations: a worker that has one of these locks is observed, or has released it since. */
  readonly locks: readonly SourceLock[]
  readonly observations: readonly WorkerObservation[]
  /** Tables of your own that could not be read: their rows were not assessed. */
  readonly unreadable: readonly UnreadableTable[]
  /** Of the runs, the workers and the tables. */
  readonly severity: Severity
}

export type AssessContext = Pick<OperatorContext, 'store' | 'policyOf' | 'observer' | 'folder'>

/** Reads and assesses every live run and every worker: behind status, top, HTTP, metrics, alerts, doctor, summary and recover. */
export async function assess(context: AssessContext): Promise<Assessment> {
  const { store } = context
  const locks = await store.sourceLocks()
  const [live, observations, holdings, now] = await Promise.all([
    store.liveRuns(),
    store.observations(),
    store.holdings(),
    store.now(),
  ])
  const runsById = new Map(live.map(({ run }) => [run.id, run]))
  const workers = assessWorkers(observations, holdings, runsById, { ...context, now })
  const unwellRows = findUnwellRows(runsById, holdings, workers)
  const runs = assessRuns(live, observations, { ...context, locks, now, unwellRows })
  const { unreadable } = store
  const severity = worstSeverity([
    ...runs.map(({ health }) => health.severity),
    ...workers.map((one) => one.severity),
    ...unreadable.map(() => 'attention' as const),
  ])
  return { now, runs, workers, locks, observations, unreadable, severity }
}

export type AssessOptions = {
  /** By run. */
  readonly unwellRows?: ReadonlyMap<RunId, UnwellRows>
  readonly now: Millis
  readonly observer: ObserverHealth
  readonly policyOf: PolicyOf
}

/** Applies `decide` to each of these runs as a whole. `observations`: every worker that has not ended. */
function assessRuns<T extends OnlyTarget>(
  live: readonly { readonly run: Run; readonly target: T | null }[],
  observations: readonly WorkerObservation[],
  options: AssessOptions & { readonly locks: readonly SourceLock[] },
): AssessedRun<T>[] {
  const owners = observations.map((observation): Owner => ({
    ...observation,
    assessment: assessLiveness(observation.evidence, options.observer),
  }))
  const byId = new Map(owners.map((owner) => [owner.worker.id, owner]))
  const present = new Set(
    owners.filter(({ assessment }) => !isLost(assessment)).map(({ worker }) => worker.source),
  )
  const locks = new Map(options.locks.map((lock) => [lock.worker, lock]))
  const locked = new Set(
    options.locks.filter(({ worker }) => worker !== null).map(({ source }) => source),
  )
  // An owner is no evidence about other live runs of the same source.
  const byCrawl = Map.groupBy(owners, ({ worker, run }) => run ?? worker.source)
  return live.map((one) => {
    const { run } = one
    const owner =
      run.kind === 'crawl'
        ? ownerOfCrawl(run, byCrawl.get(run.traits.isOnlyLive ? run.source : run.id) ?? [])
        : withLock((run.owner !== null && byId.get(run.owner)) || null, locks)
    const hasWorker = present.has(run.source)
    const isSupervised = hasWorker && run.kind === 'single' && locked.has(run.source)
    return assessOne(one, owner, { hasWorker, isSupervised }, options)
  })
}

/** While the lock of a lost worker cannot be taken, its command may still run, and recovery leaves its run alone. */
function withLock(
  owner: Owner | null,
  locks: ReadonlyMap<WorkerId | null, SourceLock>,
): Owner | null {
  const lock = owner && locks.get(owner.worker.id)
  if (!lock || !isLost(owner.assessment) || isProvenDead(owner.evidence)) return owner
  const holder = { ...owner, isLocal: isLocalProcess(owner.worker.process) }
  const { action, because } = decideSourceLock(lock, holder)
  return action === 'wait' ? { ...owner, assessment: { liveness: 'unknown', because } } : owner
}

function assessOne<T extends OnlyTarget>(
  { run, target }: { readonly run: Run; readonly target: T | null },
  owner: Owner | null,
  workers: { readonly hasWorker: boolean; readonly isSupervised: boolean },
  { now, policyOf, unwellRows }: AssessOptions,
): AssessedRun<T> {
  const policy = policyOf(run)
  const held = owner && target?.status === 'in_progress' ? targetSnapshot(target) : null
  const snapshot = { run: runSnapshot(run), target: held, owner: owner?.assessment ?? null }
  const unwell = unwellRows?.get(run.id)
  const decided = decide(snapshot, policy, now)
  // Its best row alone would be the reason.
  const decision = unwell ? { ...decided, because: unwell.because } : decided
  const lost = owner !== null && isLost(owner.assessment)
  const ageDecision = lost
    ? decide({ ...snapshot, target: null, byAge: true }, policy, now)
    : decision
  const idleMs = now - (held?.lastActivityAt ?? lastActivityOf(run))
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
    health: assessHealth({
      run,
      policy,
      decision,
      ageDecision,
      owner: assessment,
      ...workers,
      unwellRows: unwell,
      now,
    }),
  }
}

/** The part of a target that `decide` reads. */
export function targetSnapshot(target: OnlyTarget): NonNullable<Snapshot['target']> {
  return { ...target, hasProgress: target.seq > 0 }
}

/** Not alive, as far as one can know. */
export function isLost({ liveness }: Pick<LivenessAssessment, 'liveness'>): boolean {
  return liveness === 'gone' || liveness === 'silent'
}

/** Returns the worker with the best evidence of being alive. Lost workers hold nothing of a crawl that is not running. */
function ownerOfCrawl({ status }: Run, owners: readonly Owner[]): Owner | null {
  const alive = owners.find(({ assessment }) => !isLost(assessment))
  return alive ?? (status === 'running' ? owners[0] : null) ?? null
}

function evidenceOf(run: Run, owner: Owner | null, now: Millis): RunEvidence {
  const { pages, itemsNew, itemsUpdated, itemsUnchanged, skipped } = run.counts
  return {
    ageMs: run.traits.isUndated ? null : now - run.createdAt,
    idleMs: run.traits.isUndated ? null : now - run.lastActivityAt,
    pages,
    extracted: itemsNew + itemsUpdated,
    unchanged: itemsUnchanged,
    skipped,
    hasProgress: hasProgress(run),
    owner: owner?.evidence ?? null,
  }
}

/** Assesses one run, read now. `self`: a worker that does not count as its owner. `seen`: what was read since. */
export async function assessRun(
  context: AssessContext,
  run: Run,
  {
    self,
    seen,
  }: {
    readonly self?: WorkerId | undefined
    readonly seen?: Pick<Assessment, 'locks' | 'observations'>
  } = {},
): Promise<AssessedRun<Target>> {
  const { store, policyOf, observer } = context
  // A table of your own: its health depends on all of its rows.
  const isTable = run.traits.origin !== null && run.kind === 'crawl'
  const listed = isTable && (await assess(context)).runs.find((one) => one.run.id === run.id)
  if (listed) return { ...listed, target: null }
  const [target] =
    run.kind === 'single' ? (await store.targets(run.id, { limit: 1, whole: true })).items : []
  const live = { run, target: target ? await targetForDecision(store, target) : null }
  const now = await store.now()
  const locks = seen?.locks ?? (await store.sourceLocks(run.source))
  const observations = seen?.observations ?? (await store.observations())
  const others = observations.filter(({ worker }) => worker.id !== self)
  return assessRuns([live], others, { now, observer, policyOf, locks })[0]!
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
