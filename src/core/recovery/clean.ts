import { isProvenDead, assessLiveness, type ObserverHealth } from '../decide/liveness.ts'
import { newId } from '../model/id.ts'
import { withAbandonAfter } from '../model/policy-of.ts'
import type { Millis } from '../model/time.ts'
import type { Verdict } from '../model/verdict.ts'
import type { Severity } from '../decide/health.ts'
import {
  assess,
  CLAIMS_MAX,
  hasProgress,
  isLost,
  type AssessContext,
  type AssessedRun,
  type Assessment,
} from './assess.ts'
import type { OperatorContext } from './context.ts'
import { applyRunVerdict, waitForHeartbeats, toRunVerdict } from './recover.ts'

/** Live runs by what cleaning may do with them; the decision of each is the one by age. */
export type ClassifiedRuns = {
  readonly now: Millis
  readonly total: number
  /** A worker has it, or it waits for one. */
  readonly active: readonly AssessedRun[]
  /** No worker has it, and it has progress to continue from. */
  readonly resumable: readonly AssessedRun[]
  /** No worker has it, it has no progress, and it is older than the policy allows. */
  readonly dead: readonly AssessedRun[]
  readonly severity: Severity
}

/** Assesses every live run for cleaning. `ageMs`: instead of the policy's `abandonAfter`. */
export async function classifyRuns(
  context: AssessContext,
  ageMs?: number,
): Promise<ClassifiedRuns> {
  return classify(await assess({ ...context, policyOf: withAbandonAfter(context.policyOf, ageMs) }))
}

function classify({ now, runs, severity }: Assessment): ClassifiedRuns {
  const byAge = runs.map((one) => ({ ...one, decision: one.ageDecision }))
  // A run without progress waits for a worker, as a queued one does; a paused one for the end of its pause.
  const isActive = ({ run, decision, owner, health }: AssessedRun): boolean =>
    (owner !== null && !isLost(owner.assessment)) ||
    decision.action === 'leave' ||
    // A process that is not recorded may be working on it.
    health.state === 'healthy' ||
    health.state === 'paused' ||
    !hasProgress(run)
  const groups = Map.groupBy(byAge, (one) =>
    one.health.state === 'dead' && one.run.acknowledgedAt === null
      ? 'dead'
      : isActive(one)
        ? 'active'
        : 'resumable',
  )
  const group = (name: 'active' | 'resumable' | 'dead') => groups.get(name) ?? []
  return {
    now,
    total: runs.length,
    active: group('active'),
    resumable: group('resumable'),
    dead: group('dead'),
    severity,
  }
}

/** Marks these dead runs as abandoned. What is no longer dead when its turn comes is left alone. */
export async function cleanRuns(
  context: OperatorContext,
  dead: readonly AssessedRun[],
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const assessed of dead)
    verdicts.push(toRunVerdict(assessed, await abandonRun(context, assessed)))
  return verdicts
}

async function abandonRun(context: OperatorContext, assessed: AssessedRun): Promise<boolean> {
  const { store } = context
  // A row of a table of your own is written once: run and target are the same row.
  if (assessed.run.counts.targets.in_progress === 0 || assessed.run.traits.origin)
    return applyRunVerdict(context, { ...assessed, owner: null })
  // The worker is lost and not recovered yet: first revoke its claims, with the usual fence.
  await releaseLostClaims(context, assessed, await waitForHeartbeats(context))
  const run = await store.run(assessed.run.id)
  if (!run || run.counts.targets.in_progress > 0 || hasProgress(run)) return false
  return applyRunVerdict(context, { ...assessed, run, owner: null })
}

async function releaseLostClaims(
  { store, actor }: OperatorContext,
  { run }: AssessedRun,
  observer: ObserverHealth,
): Promise<void> {
  for (const { worker, evidence } of await store.observations()) {
    const assessment = assessLiveness(evidence, observer)
    if (!isLost(assessment)) continue
    const { liveness, because } = assessment
    const decision = { action: 'replan', because: `${because}; no page was done yet` } as const
    const verdict = { decision, liveness, evidence, isProvisional: !isProvenDead(evidence) }
    const held = (await store.claimsOf(worker.id, null, CLAIMS_MAX)).filter(
      (claim) => claim.run.id === run.id,
    )
    await store.applyVerdicts(
      held.map((claim) => ({ ...verdict, held: claim, newRun: newId() })),
      actor,
    )
  }
}
