import type { Health } from '../core/decide/health.ts'
import { decide, type Snapshot } from '../core/decide/recovery.ts'
import { explainNextSteps, type NextSteps } from './next-steps.ts'
import { assessLiveness, assessProgress, type ObserverHealth } from '../core/decide/liveness.ts'
import type { TargetId } from '../core/model/id.ts'
import { policyForGroup, type Policy } from '../core/model/policy.ts'
import { isLive, type Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import type { Decision } from '../core/model/verdict.ts'
import { decisionView } from './verdict.ts'
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

/** Why a run or a target is in its state, and what comes next. */
export type Explanation = {
  readonly run: Run
  /** Null when the run as a whole is explained. */
  readonly target: Target | null
  readonly decision: Decision
  /** Of a live run that is explained as a whole; else null. */
  readonly health: Health | null
  readonly owner: Owner | null
  readonly policy: Policy
  readonly outlook: NextSteps
  /** Its audit entries, newest first. */
  readonly trail: readonly AuditEntry[]
  readonly now: Millis
}

const AUDIT_MAX = 5

export async function explainRun(context: OperatorContext, run: Run): Promise<Explanation> {
  const { store } = context
  const assessed = await assessRun(context, run)
  const { decision, policy } = assessed
  // A worker of its source has nothing to do with a run that has ended.
  const owner = isLive(run.status) ? assessed.owner : null
  const held = assessed.target?.status === 'in_progress' ? targetSnapshot(assessed.target) : null
  const now = await store.now()
  const snapshot = { run: runSnapshot(run), target: held, owner: owner?.assessment ?? null }
  const trail = await store.audit({ run: run.id, newestFirst: true, limit: AUDIT_MAX })
  return {
    run,
    target: null,
    decision,
    health: isLive(run.status) ? assessed.health : null,
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
  return { run, target, decision, health: null, owner, policy, outlook: nextSteps, trail, now }
}

/** A verdict that the table has no status for stays unapplied until one is mapped. */
function nextStepsFor(run: Run, ...decided: Parameters<typeof explainNextSteps>): NextSteps {
  const nextSteps = explainNextSteps(...decided)
  const { blockedBy } = decisionView(run, decided[1])
  return blockedBy === null ? nextSteps : { ...nextSteps, changes: [`${blockedBy}.`] }
}

/** Returns the worker that holds the target now; `target.worker` also names the last one. */
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
