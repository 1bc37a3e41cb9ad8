import { decideSourceLock, type SourceLockDecision } from '../decide/source-lock.ts'
import { decide } from '../decide/recovery.ts'
import {
  isProvenDead,
  assessLiveness,
  assessProgress,
  type ObserverHealth,
  type LivenessAssessment,
} from '../decide/liveness.ts'
import { newId, type RunId, type TargetId, type WorkerId } from '../model/id.ts'
import { policyForGroup } from '../model/policy.ts'
import { TARGET_STATUS_AFTER, verdictOn, type Verdict } from '../model/verdict.ts'
import type { Evidence, Worker } from '../model/worker.ts'
import { isLocalProcess } from '../host/identity.ts'
import type { HeldTarget, PendingVerdict, Store, WorkerObservation } from '../store/store.ts'
import type { PolicyOf } from '../model/policy-of.ts'
import { isLost, runSnapshot, targetSnapshot } from './assess.ts'

export type SweepOptions = {
  readonly observer: ObserverHealth
  /** Workers and their evidence; read from the store if left out. */
  readonly observations?: readonly WorkerObservation[]
  /** Actor in the audit trail. */
  readonly actor: string
  readonly policyOf: PolicyOf
  /** The sweeping worker, which is not declared lost. */
  readonly self?: WorkerId
  readonly dryRun?: boolean
  /** Also checks the claims of live workers for stalls. */
  readonly includeStalled?: boolean
  /** The workers in `observations` are known to have ended, whatever their evidence. */
  readonly ended?: LivenessAssessment
  /** Restricts the sweep to some targets. */
  readonly filter?: (held: HeldTarget, evidence: Evidence) => boolean
}

const BATCH_SIZE = 500
/** A worker that is not proven dead is retired after this time. */
const RETIRE_AFTER_MS = 3_600_000

/** Checks every worker that has not ended, and revokes the claims of those that are gone, silent or, by policy, stalled. */
export async function sweep(store: Store, options: SweepOptions): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  let pending: PendingVerdict[] = []
  let endedWorkers: WorkerId[] = []
  const applyPending = async (): Promise<void> => {
    const shouldApply = !options.dryRun && pending.length > 0
    const applied = shouldApply ? await store.applyVerdicts(pending, options.actor) : []
    verdicts.push(...pending.map((verdict, n) => toVerdict(verdict, applied[n] ?? false)))
    for (const worker of endedWorkers) await store.retireWorker(worker)
    pending = []
    endedWorkers = []
  }
  for (const observation of options.observations ?? (await store.observations())) {
    const assessment = options.ended ?? assessLiveness(observation.evidence, options.observer)
    const lost = isLost(assessment)
    if (!lost && !(options.includeStalled && assessment.liveness === 'present')) continue
    if (lost && observation.worker.id === options.self) continue
    for await (const batch of pendingVerdicts(store, observation, assessment, options)) {
      pending.push(...batch)
      // Workers with few claims each, as in tables of your own, share a batch.
      if (pending.length >= BATCH_SIZE) await applyPending()
    }
    const isUnfiltered = !options.dryRun && !options.filter
    if (lost && isUnfiltered && canRetire(observation.evidence))
      endedWorkers.push(observation.worker.id)
  }
  await applyPending()
  // A run that lost a target to a timeout is not interrupted: its worker is alive and will claim it again.
  const touched = new Map<RunId, boolean>()
  for (const { run, applied, liveness } of verdicts) {
    if (applied) touched.set(run, (touched.get(run) ?? false) || isLost({ liveness }))
  }
  for (const [run, lost] of touched) await store.settle(run, lost)
  return verdicts
}

/** Yields the verdicts on the claims of a worker, batch by batch. */
async function* pendingVerdicts(
  store: Store,
  { worker, evidence }: WorkerObservation,
  assessment: LivenessAssessment,
  options: SweepOptions,
): AsyncGenerator<PendingVerdict[]> {
  const now = await store.now()
  const { filter = () => true, policyOf } = options
  let after: TargetId | null = null
  for (;;) {
    const batch: HeldTarget[] = await store.claimsOf(worker.id, after, BATCH_SIZE)
    const mayHoldLock =
      isLost(assessment) &&
      batch.some(({ run }) => run.kind === 'single' && run.traits.origin === null)
    const locks = mayHoldLock ? await locksOfLost(store, worker, evidence, assessment) : NO_LOCKS
    yield batch
      .filter((held) => filter(held, evidence))
      .filter(({ run }) => locks.get(run.source)?.action !== 'wait')
      .map((held) => {
        const mayStillRun = locks.has(held.run.source)
        const isProven = options.ended !== undefined || isProvenDead(evidence)
        return decideClaim(held, assessment, { evidence, policyOf, now, mayStillRun, isProven })
      })
      .filter(({ decision }) => decision.action !== 'leave')
    if (batch.length < BATCH_SIZE) return
    // Continue after the last claim, also if it was left alone.
    after = batch.at(-1)!.target.id
  }
}

const NO_LOCKS: ReadonlyMap<string, SourceLockDecision> = new Map()

/**
 * Returns the source locks of a lost worker that is not proven dead. Its runs of these sources are recovered only when the
 * lock could be taken: until then no other copy can start, and its command may still run.
 */
async function locksOfLost(
  store: Store,
  worker: Worker,
  evidence: Evidence,
  assessment: LivenessAssessment,
): Promise<ReadonlyMap<string, SourceLockDecision>> {
  if (isProvenDead(evidence)) return NO_LOCKS
  const holder = { assessment, evidence, isLocal: isLocalProcess(worker.process) }
  const locks = (await store.sourceLocks()).filter((lock) => lock.worker === worker.id)
  return new Map(locks.map((lock) => [lock.source, decideSourceLock(lock, holder)]))
}

type DecideContext = {
  readonly evidence: Evidence
  readonly policyOf: PolicyOf
  readonly now: number
  readonly mayStillRun: boolean
  readonly isProven: boolean
}

function decideClaim(
  held: HeldTarget,
  owner: LivenessAssessment,
  context: DecideContext,
): PendingVerdict {
  const { evidence, policyOf, now, mayStillRun, isProven } = context
  const { run, target } = held
  const policy = policyForGroup(policyOf(run), target.group)
  const snapshot = { run: runSnapshot(run), target: targetSnapshot(target), owner, mayStillRun }
  const decision = decide(snapshot, policy, now)
  const { liveness } = assessProgress(owner, now - target.lastActivityAt, policy.maxSilenceMs)
  // A claim taken from a live worker is a timeout of the target or of its run.
  const isTimeout = liveness === 'present' && decision.action !== 'leave'
  const verdict = { held, decision, evidence, liveness: isTimeout ? 'stalled' : liveness } as const
  return { ...verdict, isProvisional: isLost(owner) && !isProven, newRun: newId() }
}

function toVerdict(
  { held, decision, liveness, evidence }: PendingVerdict,
  applied: boolean,
): Verdict {
  const { run, target } = held
  return {
    ...verdictOn(run, target, decision),
    liveness,
    evidence,
    from: target.status,
    to: TARGET_STATUS_AFTER[decision.action] ?? target.status,
    needsAttention: TARGET_STATUS_AFTER[decision.action] === undefined,
    applied,
  }
}

/** Returns true if the worker cannot return, or has been silent for too long to be worth a row. */
function canRetire(evidence: Evidence): boolean {
  return isProvenDead(evidence) || evidence.heartbeatAgeMs > RETIRE_AFTER_MS
}
