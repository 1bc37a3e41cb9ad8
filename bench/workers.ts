import { newId } from '../src/core/model/id.ts'
import type { ClaimedTarget } from '../src/core/model/claim.ts'
import { DEFAULT_POLICY } from '../src/core/model/policy.ts'
import { thisProcess } from '../src/core/host/identity.ts'
import type { Store } from '../src/core/store/store.ts'

export const SOURCE = 'bench'
const PLAN_BATCH = 1_000

/** A planned run of so many targets. */
export async function planTargets(store: Store, targets: number): Promise<void> {
  const run = newId()
  await store.enqueue({ id: run, source: SOURCE, kind: 'crawl', policy: DEFAULT_POLICY })
  for (let at = 0; at < targets; at += PLAN_BATCH) {
    const count = Math.min(PLAN_BATCH, targets - at)
    const keys = Array.from({ length: count }, (_, n) => ({
      key: `target-${at + n}`,
      group: `g${n % 10}`,
    }))
    await store.plan(run, keys)
  }
  await store.finishPlanning(run)
}

/** A registered worker that claims. It does not beat: where others look after the dead, it needs a long lease. */
export async function registerClaimer(
  store: Store,
  leaseMs = 15_000,
): Promise<(count: number) => Promise<ClaimedTarget[]>> {
  const worker = newId()
  await store.registerWorker({
    id: worker,
    source: SOURCE,
    process: thisProcess(),
    presence: { kind: 'none' },
    version: 'bench',
    heartbeatMs: 1_000,
    leaseMs,
  })
  return (count) =>
    store.claim({
      worker,
      source: SOURCE,
      claimIds: Array.from({ length: count }, () => newId()),
      isIdle: false,
      singleSlot: false,
    })
}
