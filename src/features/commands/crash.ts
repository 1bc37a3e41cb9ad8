import { decide } from '../../core/decide/recovery.ts'
import type { Claim } from '../../core/model/claim.ts'
import { newId } from '../../core/model/id.ts'
import { whenAvailable } from '../../core/store/open.ts'
import type { Held, Store } from '../../core/store/store.ts'
import { HELD_MAX, hasProgress, runSnapshot, targetSnapshot } from '../../core/recovery/assess.ts'
import type { RunHandle } from '../../core/worker/run-handle.ts'
import type { RunnerOptions } from './runner.ts'

const TRIES = 10

/**
 * A command that died is judged as a worker that died: by the same decision, with the same entry in the trail. With
 * nothing done its run has failed: whether there is another try is for whoever started it to say.
 */
export async function settleCrash(
  { store, actor }: Pick<RunnerOptions, 'store' | 'actor'>,
  handle: RunHandle,
  claim: Claim,
  because: string,
): Promise<void> {
  for (let tries = 1; tries <= TRIES; tries++) {
    const held = await whenAvailable(() => find(store, claim))
    // Somebody else has it already, or it was cancelled.
    if (!held) break
    if (!hasProgress(held.run)) return handle.fail(because)
    const isApplied = await whenAvailable(() => judge(store, actor, held, because))
    if (isApplied) break
    // Its worker has beaten since: the judgement was made a moment too early.
  }
  await whenAvailable(() => store.settle(handle.id, true))
}

async function find(store: Store, claim: Claim): Promise<Held | undefined> {
  const held = await store.heldBy(claim.worker, null, HELD_MAX)
  return held.find(({ target }) => target.id === claim.target && target.claimId === claim.claimId)
}

async function judge(store: Store, actor: string, held: Held, because: string): Promise<boolean> {
  const [now, roll] = await Promise.all([store.now(), store.workers()])
  const evidence = roll.find(({ worker }) => worker.id === held.target.worker)?.evidence
  if (!evidence) return false
  const owner = { sign: 'gone', because: `its command ended: ${because}` } as const
  const snapshot = { run: runSnapshot(held.run), target: targetSnapshot(held.target), owner }
  const decision = decide(snapshot, held.run.policy, now)
  const judgement = { held, decision, sign: owner.sign, evidence, newRun: newId() }
  const [applied] = await store.applyJudgements([judgement], actor)
  return applied === true
}
