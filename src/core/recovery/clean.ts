import { isProvenDead, assessLiveness, type ObserverHealth } from '../decide/liveness.ts'
import { newId } from '../model/id.ts'
import { withAbandonAfter } from '../model/policy-of.ts'
import type { Millis } from '../model/time.ts'
import type { Action, Verdict } from '../model/verdict.ts'
import type { Severity } from '../decide/health.ts'
import {
  assess,
  CLAIMS_MAX,
  hasProgress,
  isLost,
  runSnapshot,
  type AssessContext,
  type AssessedRun,
  type Assessment,
} from './assess.ts'
import type { OperatorContext } from './context.ts'
import { applyRunVerdict, waitForHeartbeats, toRunVerdict } from './recover.ts'

/** Live runs by what cleaning may do with them. */
export type ClassifiedRuns = {
  readonly now: Millis
  readonly total: number
  /** All others: a worker has it, it waits for one or for the end of a pause, or recovery ends it. */
  readonly active: readonly AssessedRun[]
  /** No worker has it, and the next one continues from its progress. */
  readonly resumable: readonly AssessedRun[]
  /** No worker has it, it has no progress, and it is older than the policy allows. Its decision is the one by age. */
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

/** Sorts assessed live runs for cleaning. */
export function classify({ now, runs, severity }: Assessment): ClassifiedRuns {
  const groups = Map.groupBy(runs, (one) =>
    one.health.state === 'dead' && one.run.acknowledgedAt === null
      ? 'dead'
      : isResumable(one)
        ? 'resumable'
        : 'active',
  )
  const group = (name: 'active' | 'resumable' | 'dead') => groups.get(name) ?? []
  return {
    now,
    total: runs.length,
    active: group('active'),
    resumable: group('resumable'),
    dead: group('dead').map((one) => ({ ...one, decision: one.ageDecision })),
    severity,
  }
}

/** Decisions after which the next worker continues a run that has progress. */
const CONTINUED: readonly Action[] = ['resume', 'resumable', 'wait', 'leave']

function isResumable({ run, decision, owner, health }: AssessedRun): boolean {
  const isHeld = owner !== null && !isLost(owner.assessment)
  // A process that is not recorded may be working on a healthy one.
  const isFree = !isHeld && health.state !== 'healthy' && health.state !== 'paused'
  const isLeft = hasProgress(run) && !runSnapshot(run).isComplete
  return isFree && isLeft && CONTINUED.includes(decision.action)
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
