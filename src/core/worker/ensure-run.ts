import { AlreadyRunningError } from '../model/errors.ts'
import type { Emit } from '../model/event.ts'
import { newId, type WorkerId } from '../model/id.ts'
import { makePolicyOf, NO_OVERRIDES } from '../model/policy-of.ts'
import type { Run } from '../model/run.ts'
import { TRUSTED_OBSERVER } from '../decide/liveness.ts'
import type { Store } from '../store/store.ts'
import type { CrawlDefinition } from './crawl.ts'
import { assessRun } from '../recovery/assess.ts'
import { applyRunVerdict, toRunVerdict } from '../recovery/recover.ts'

/** Ensures that the source has a live run with the crawl's policy. Starts one if it has none. */
export async function ensureRun(
  store: Store,
  crawl: Pick<CrawlDefinition, 'source' | 'policy'>,
  emit: Emit,
  self?: WorkerId,
): Promise<void> {
  const { source, policy } = crawl
  const live = await store.liveRun(source)
  if (live && !(await cleanIfDead(store, { ...live, policy }, emit, self))) {
    return store.setPolicy(live.id, policy)
  }
  const id = newId()
  try {
    await store.enqueue({ id, source, kind: 'crawl', policy })
    emit({ type: 'run_start', run: id, source })
  } catch (error) {
    // Another process started one at the same time.
    if (!(error instanceof AlreadyRunningError)) throw error
  }
}

/** Abandons the run if it is dead. Returns true if it did, so that a new one can start. */
async function cleanIfDead(
  store: Store,
  run: Run,
  emit: Emit,
  self: WorkerId | undefined,
): Promise<boolean> {
  if (run.counts.targets.in_progress > 0) return false
  // This worker is about to claim it and does not count as its owner. The crawl's policy includes the config's overrides.
  const context = { store, policyOf: CRAWL_POLICY, observer: TRUSTED_OBSERVER }
  const assessed = await assessRun(context, run, { self })
  if (assessed.decision.action !== 'abandon' || assessed.owner) return false
  const applied = await applyRunVerdict({ store, actor: `start of ${run.source}` }, assessed)
  if (applied) emit({ type: 'recovery', verdict: toRunVerdict(assessed, applied) })
  return applied
}

const CRAWL_POLICY = makePolicyOf(NO_OVERRIDES)
