import { AlreadyRunningError } from '../model/errors.ts'
import type { Emit } from '../model/event.ts'
import { newId, type WorkerId } from '../model/id.ts'
import type { Run } from '../model/run.ts'
import type { Store } from '../store/store.ts'
import type { Crawl } from './crawl.ts'
import { assessRun } from '../recovery/assess.ts'
import { applyRunVerdict, toRunVerdict } from '../recovery/recover.ts'

/** A live run of the crawl is there afterwards, with the crawl's policy: the one there was, or a new one. */
export async function ensureRun(
  store: Store,
  crawl: Crawl,
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
    // Another process was faster: its run is as good.
    if (!(error instanceof AlreadyRunningError)) throw error
  }
}

/** A dead run is marked as abandoned, and makes room for a new one. */
async function cleanIfDead(
  store: Store,
  run: Run,
  emit: Emit,
  self: WorkerId | undefined,
): Promise<boolean> {
  if (run.counts.targets.in_progress > 0) return false
  // Who is about to work on it is not yet at work on it.
  const assessed = await assessRun(store, run, { ...(self !== undefined && { self }) })
  if (assessed.decision.action !== 'abandon' || assessed.owner) return false
  const applied = await applyRunVerdict({ store, actor: `start of ${run.source}` }, assessed)
  if (applied) emit({ type: 'recovery', verdict: toRunVerdict(assessed, applied) })
  return applied
}
