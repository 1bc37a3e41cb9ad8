import { decide } from '../../core/decide/recovery.ts'
import type { Claim } from '../../core/model/claim.ts'
import { newId } from '../../core/model/id.ts'
import { withRetry } from '../../core/store/open.ts'
import type { HeldTarget, Store } from '../../core/store/store.ts'
import { CLAIMS_MAX, hasProgress, runSnapshot, targetSnapshot } from '../../core/recovery/assess.ts'
import type { RunHandle } from '../../core/worker/run-handle.ts'
import type { RunnerOptions } from './runner.ts'

const ATTEMPTS_MAX = 10

/**
 * Settles the run of a crashed command like that of a dead worker: same decision, same audit entry. Without progress the
 * run fails, and the supervisor decides about another try.
 */
export async function settleCrash(
  { store, actor }: Pick<RunnerOptions, 'store' | 'actor'>,
  handle: RunHandle,
  claim: Claim,
  because: string,
): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const held = await withRetry(() => findClaimedTarget(store, claim))
    // Another process claimed it, or it was cancelled.
    if (!held) break
    if (!hasProgress(held.run)) return handle.fail(because)
    const isApplied = await withRetry(() => applyVerdict(store, actor, held, because))
    if (isApplied) break
    // The worker sent a heartbeat meanwhile: try again with new evidence.
  }
  await withRetry(() => store.settle(handle.id, true))
}

async function findClaimedTarget(store: Store, claim: Claim): Promise<HeldTarget | undefined> {
  const held = await store.claimsOf(claim.worker, null, CLAIMS_MAX)
  return held.find(({ target }) => target.id === claim.target && target.claimId === claim.claimId)
}

async function applyVerdict(
  store: Store,
  actor: string,
  held: HeldTarget,
  because: string,
): Promise<boolean> {
  const [now, observations] = await Promise.all([store.now(), store.observations()])
  const evidence = observations.find(({ worker }) => worker.id === held.target.worker)?.evidence
  if (!evidence) return false
  const owner = { liveness: 'gone', because: `its command ended: ${because}` } as const
  const snapshot = { run: runSnapshot(held.run), target: targetSnapshot(held.target), owner }
  const decision = decide(snapshot, held.run.policy, now)
  const verdict = { held, decision, liveness: owner.liveness, evidence, newRun: newId() }
  const [applied] = await store.applyVerdicts([verdict], actor)
  return applied === true
}
