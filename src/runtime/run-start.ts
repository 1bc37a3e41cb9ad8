import { AlreadyRunning } from '../model/errors.ts'
import type { Emit } from '../model/event.ts'
import { newId } from '../model/id.ts'
import type { Store } from '../store/store.ts'
import type { Crawl } from './crawl.ts'

/** A live run of the crawl is there afterwards, with the crawl's policy: the one there was, or a new one. */
export async function ensureRun(store: Store, crawl: Crawl, emit: Emit): Promise<void> {
  const { source, policy } = crawl
  const live = await store.liveRun(source)
  if (live) return store.setPolicy(live.id, policy)
  const id = newId()
  try {
    await store.enqueue({ id, source, kind: 'crawl', policy })
    emit({ type: 'run_start', run: id, source })
  } catch (error) {
    // Another process was faster: its run is as good.
    if (!(error instanceof AlreadyRunning)) throw error
  }
}
