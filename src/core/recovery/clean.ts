import { cancelHint } from '../decide/cancel.ts'
import {
  isProvenDead,
  assessLiveness,
  TRUSTED_OBSERVER,
  type ObserverHealth,
} from '../decide/liveness.ts'
import { NotFoundError, RefusedError } from '../model/errors.ts'
import { newId, shortId, type RunId } from '../model/id.ts'
import { isLive } from '../model/run.ts'
import type { Verdict } from '../model/verdict.ts'
import {
  CLAIMS_MAX,
  hasProgress,
  isLost,
  assessRun,
  assessRuns,
  storedPolicy,
  type AssessedRun,
  type PolicyOf,
} from './assess.ts'
import {
  applyRunVerdict,
  waitForHeartbeats,
  toRunVerdict,
  type OperatorContext,
} from './recover.ts'

export type ClassifiedRuns = {
  readonly total: number
  /** Runs with an owner, or waiting for a worker. */
  readonly active: AssessedRun[]
  /** Runs without an owner, with progress to continue from. */
  readonly resumable: AssessedRun[]
  /** Runs without an owner or progress, older than `abandonAfter`. */
  readonly dead: AssessedRun[]
}

/** Classifies every live run. `ageMs` replaces the policy's `abandonAfter`. */
export async function classifyRuns(
  { store, policyOf = storedPolicy }: Pick<OperatorContext, 'store' | 'policyOf'>,
  ageMs?: number,
): Promise<ClassifiedRuns> {
  const [live, observations, now] = await Promise.all([
    store.liveRuns(),
    store.observations(),
    store.now(),
  ])
  const options = {
    now,
    observer: TRUSTED_OBSERVER,
    policyOf: withAbandonAfter(policyOf, ageMs),
    ignoreLostOwner: true,
  }
  const assessed = assessRuns(live, observations, options)
  const isDead = ({ decision }: AssessedRun): boolean => decision.action === 'abandon'
  // Without progress there is nothing to continue from: the run waits for a worker, like a queued one.
  const isActive = ({ run, decision, owner }: AssessedRun): boolean =>
    (owner !== null && !isLost(owner.assessment)) ||
    decision.action === 'leave' ||
    !hasProgress(run)
  return {
    total: assessed.length,
    dead: assessed.filter(isDead),
    active: assessed.filter((one) => !isDead(one) && isActive(one)),
    resumable: assessed.filter((one) => !isDead(one) && !isActive(one)),
  }
}

/** Returns the policies, with another `abandonAfter` if given. */
export function withAbandonAfter(policyOf: PolicyOf, ageMs: number | undefined): PolicyOf {
  if (ageMs === undefined) return policyOf
  return (run) => ({ ...policyOf(run), abandonAfterMs: ageMs })
}

/** Abandons these dead runs, except those that are no longer dead. */
export async function cleanRuns(
  context: OperatorContext,
  dead: readonly AssessedRun[],
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const assessed of dead)
    verdicts.push(toRunVerdict(assessed, await abandonRun(context, assessed)))
  return verdicts
}

/** Abandons one run. Throws with the reason if it is not dead. */
export async function cleanRun(
  context: OperatorContext,
  id: RunId,
  ageMs?: number,
): Promise<Verdict> {
  const run = await context.store.run(id)
  if (!run) throw new NotFoundError(`run ${id}`, '`unstuck runs` lists them.')
  const short = shortId(id)
  if (!isLive(run.status))
    throw new RefusedError(`Run ${short} is ${run.status}: there is nothing to clean.`)
  const policyOf = withAbandonAfter(context.policyOf ?? storedPolicy, ageMs)
  const assessed = await assessRun(context.store, run, { policyOf, ignoreLostOwner: true })
  if (assessed.decision.action !== 'abandon') {
    throw new RefusedError(
      `Run ${short} is not dead: ${assessed.decision.because}. ` +
        `Look with \`unstuck explain ${short}\`; ${cancelHint(run)}.`,
    )
  }
  return toRunVerdict(assessed, await abandonRun(context, assessed))
}

async function abandonRun(context: OperatorContext, assessed: AssessedRun): Promise<boolean> {
  const { store } = context
  // An adopted row is written once: run and target are the same row.
  if (assessed.run.counts.targets.in_progress === 0 || assessed.run.adopted)
    return applyRunVerdict(context, { ...assessed, owner: null })
  // The worker is lost and not recovered yet: first take back its claims, with the usual fence.
  await releaseLostClaims(context, assessed, await waitForHeartbeats(store))
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
    const because = `${assessment.because}; no page was done yet`
    const decision = { action: 'replan', because } as const
    const verdicts = (await store.claimsOf(worker.id, null, CLAIMS_MAX))
      .filter((held) => held.run.id === run.id)
      .map((held) => ({
        held,
        decision,
        liveness: assessment.liveness,
        evidence,
        isProvisional: !isProvenDead(evidence),
        newRun: newId(),
      }))
    await store.applyVerdicts(verdicts, actor)
  }
}
