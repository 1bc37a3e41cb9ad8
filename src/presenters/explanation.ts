import { decide, type Snapshot } from '../core/decide/recovery.ts'
import { explainNextSteps, type NextSteps } from './next-steps.ts'
import { assessLiveness, assessProgress, type ObserverHealth } from '../core/decide/liveness.ts'
import type { TargetId } from '../core/model/id.ts'
import { policyForGroup, type Policy } from '../core/model/policy.ts'
import { isLive, type Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import { blockedReason, type Decision } from '../core/model/verdict.ts'
import type { Millis } from '../core/model/time.ts'
import type { AuditEntry, Store, WorkerObservation } from '../core/store/store.ts'
import {
  targetForDecision,
  assessRun,
  runSnapshot,
  targetSnapshot,
  type Owner,
} from '../core/recovery/assess.ts'
import type { OperatorContext } from '../core/recovery/context.ts'

/** Why a run or a target is what it is, and what comes next. */
export type Explanation = {
  readonly run: Run
  /** Null when the run as a whole is explained. */
  readonly target: Target | null
  readonly decision: Decision
  readonly owner: Owner | null
  readonly policy: Policy
  readonly outlook: NextSteps
  /** What was done to it so far, newest first. */
  readonly trail: readonly AuditEntry[]
  readonly now: Millis
}

const AUDIT_MAX = 5

export async function explainRun(context: OperatorContext, run: Run): Promise<Explanation> {
  const { store } = context
  const assessed = await assessRun(context, run)
  const { decision, policy } = assessed
  // Whoever works on its source now has nothing to do with a run that has ended.
  const owner = isLive(run.status) ? assessed.owner : null
  const held = assessed.target?.status === 'in_progress' ? targetSnapshot(assessed.target) : null
  const now = await store.now()
  const snapshot = { run: runSnapshot(run), target: held, owner: owner?.assessment ?? null }
  const trail = await store.audit({ run: run.id, newestFirst: true, limit: AUDIT_MAX })
  return {
    run,
    target: null,
    decision,
    owner,
    policy,
    outlook: nextStepsFor(run, snapshot, decision, policy, now),
    trail,
    now,
  }
}

export async function explainTarget(
  context: OperatorContext,
  id: TargetId,
): Promise<Explanation | null> {
  const { store, policyOf, observer } = context
  const target = await store.target(id)
  const run = target && (await store.run(target.run))
  if (!target || !run) return null
  const held = await ownerOf(store, target, observer)
  const policy = policyForGroup(policyOf(run), target.group)
  const now = await store.now()
  const idleMs = now - target.lastActivityAt
  const owner = held && {
    ...held,
    assessment: assessProgress(held.assessment, idleMs, policy.maxSilenceMs),
  }
  const snapshot: Snapshot = {
    run: runSnapshot(run),
    target: targetSnapshot(await targetForDecision(store, target)),
    owner: held?.assessment ?? null,
  }
  const decision = decide(snapshot, policy, now)
  const trail = await store.audit({ run: run.id, target: id, newestFirst: true, limit: AUDIT_MAX })
  const nextSteps = nextStepsFor(run, snapshot, decision, policy, now)
  return { run, target, decision, owner, policy, outlook: nextSteps, trail, now }
}

/** What cannot be carried out for want of a word stays as it is until somebody maps one. */
function nextStepsFor(run: Run, ...decided: Parameters<typeof explainNextSteps>): NextSteps {
  const nextSteps = explainNextSteps(...decided)
  const blockedBy = blockedReason(run, decided[1])
  return blockedBy === null ? nextSteps : { ...nextSteps, changes: [`${blockedBy}.`] }
}

/** Who has it now; a target also remembers who had it last. */
async function ownerOf(
  store: Store,
  { worker: id, status }: Target,
  observer: ObserverHealth,
): Promise<Owner | null> {
  if (id === null || status !== 'in_progress') return null
  const found = (await store.observations()).find(
    ({ worker }: WorkerObservation) => worker.id === id,
  )
  return found ? { ...found, assessment: assessLiveness(found.evidence, observer) } : null
}
