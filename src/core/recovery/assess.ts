import { decide, type Snapshot } from '../decide/recovery.ts'
import {
  assessLiveness,
  TRUSTED_OBSERVER,
  assessProgress,
  type ObserverHealth,
  type LivenessAssessment,
} from '../decide/liveness.ts'
import type { WorkerId } from '../model/id.ts'
import type { Policy } from '../model/policy.ts'
import { countOpenTargets, type Run } from '../model/run.ts'
import type { Target } from '../model/target.ts'
import type { Millis } from '../model/time.ts'
import type { Decision, RunEvidence } from '../model/verdict.ts'
import type { OnlyTarget, Store, WorkerObservation } from '../store/store.ts'

/** By what a run is judged: as kept with it, unless somebody knows better. */
export type PolicyOf = (run: Run) => Policy

/** The policy that a run was last worked on with. */
export const storedPolicy: PolicyOf = (run) => run.policy

/** Whether anything of a run is worth keeping. */
export function hasProgress({ counts, progress, artifacts }: Run): boolean {
  const { pages, itemsNew, itemsUpdated, skipped } = counts
  return pages + itemsNew + itemsUpdated + skipped + artifacts > 0 || (progress?.done ?? 0) > 0
}

/** A run's part of what `decide` looks at. */
export function runSnapshot(run: Run): Snapshot['run'] {
  const { status, kind, createdAt, startedAt, resumedAt, lastActivityAt, retries } = run
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
    isAdopted: run.adopted !== undefined,
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
  /** Who works on it, by the best sign of life; null when nobody is known to. */
  readonly owner: Owner | null
  readonly evidence: RunEvidence
}

export type AssessOptions = {
  readonly now: Millis
  readonly observer: ObserverHealth
  readonly policyOf: PolicyOf
  /** Whoever is lost counts as nobody: for cleaning, where age decides and not how it came to this. */
  readonly ignoreLostOwner?: boolean
}

/** What `decide` says about each of these runs as a whole. `roll`: every worker that has not ended. */
export function assessRuns<T extends OnlyTarget>(
  live: readonly { readonly run: Run; readonly target: T | null }[],
  observations: readonly WorkerObservation[],
  options: AssessOptions,
): AssessedRun<T>[] {
  const owners = observations.map((observation): Owner => ({
    ...observation,
    assessment: assessLiveness(observation.evidence, options.observer),
  }))
  const byId = new Map(owners.map((owner) => [owner.worker.id, owner]))
  // A row of a user's table may be of the same source as a crawl of our own, or as another table, and says nothing about it.
  const byCrawl = Map.groupBy(owners, ({ worker, run }) => run ?? worker.source)
  return live.map((one) => {
    const { run } = one
    const owner =
      run.kind === 'crawl'
        ? mostAlive(byCrawl.get(run.adopted ? run.id : run.source) ?? [])
        : (run.owner !== null && byId.get(run.owner)) || null
    return assessOne(one, owner, options)
  })
}

function assessOne<T extends OnlyTarget>(
  { run, target }: { readonly run: Run; readonly target: T | null },
  owner: Owner | null,
  options: AssessOptions,
): AssessedRun<T> {
  const policy = options.policyOf(run)
  const lost = owner !== null && isLost(owner.assessment)
  const countedOwner = lost && options.ignoreLostOwner ? null : owner
  const held = countedOwner && target?.status === 'in_progress' ? targetSnapshot(target) : null
  const snapshot = { run: runSnapshot(run), target: held, owner: countedOwner?.assessment ?? null }
  const decision = decide(snapshot, policy, options.now)
  const idleMs = options.now - (held ?? run).lastActivityAt
  const shownOwner = owner && {
    ...owner,
    assessment: assessProgress(owner.assessment, idleMs, policy.maxSilenceMs),
  }
  return {
    run,
    target,
    policy,
    decision,
    owner: shownOwner,
    evidence: evidenceOf(run, owner, options.now),
  }
}

/** A target's part of what `decide` looks at. */
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

/** The same for one run, looked up now. `self`: who asks, and does not count. */
export async function assessRun(
  store: Store,
  run: Run,
  options: Partial<AssessOptions> & { readonly self?: WorkerId } = {},
): Promise<AssessedRun<Target>> {
  const {
    observer = TRUSTED_OBSERVER,
    policyOf = storedPolicy,
    ignoreLostOwner = false,
    self,
  } = options
  const [target] =
    run.kind === 'single' ? (await store.targets(run.id, { limit: 1, whole: true })).items : []
  const live = { run, target: target ? await targetForDecision(store, target) : null }
  const assessOptions = { now: await store.now(), observer, policyOf, ignoreLostOwner }
  const observations = (await store.observations()).filter(({ worker }) => worker.id !== self)
  return assessRuns([live], observations, assessOptions)[0]!
}

/** More than any process holds at once. */
export const CLAIMS_MAX = 1_000

/** People do not see the claim at work as a crash; its judge does, unless a page was saved since. */
export async function targetForDecision(store: Store, target: Target): Promise<Target> {
  if (target.status !== 'in_progress' || target.worker === null) return target
  const held = await store.claimsOf(target.worker, null, CLAIMS_MAX)
  const found = held.find((one) => one.target.id === target.id)?.target
  if (!found || found.seq !== target.seq) return target
  // What a judge does not need is cut there.
  const { cut: _, ...judged } = found
  return { ...judged, next: target.next, cursor: target.cursor, lastError: target.lastError }
}
