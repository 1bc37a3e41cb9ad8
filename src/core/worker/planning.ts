import { messageOf, toError, UnstuckError, UsageError } from '../model/errors.ts'
import type { RunId } from '../model/id.ts'
import type { NewTarget } from '../model/target.ts'
import type { Store } from '../store/store.ts'
import { whenAvailable } from '../store/open.ts'
import type { Crawl } from './crawl.ts'

const BATCH = 1_000
/** Fewer are saved after this long, so that work begins while the rest still streams in. */
const STREAM_MS = 200

/**
 * Streams the crawl's targets into a run, never more than a batch in memory, and says last that all are in. Cut
 * short, it is done again from the start: the same key is the same target. Answers how many there were new.
 */
export async function planRun(
  store: Store,
  crawl: Crawl,
  run: RunId,
  stop: AbortSignal,
  onProgress: (added: number) => void = () => {},
): Promise<number> {
  let added = 0
  let batch: NewTarget[] = []
  let saving = Promise.resolve()
  const save = (): Promise<void> => {
    const ready = batch
    batch = []
    saving = saving.then(async () => {
      if (ready.length === 0) return
      added += await whenAvailable(() => store.plan(run, ready), stop)
      onProgress(added)
    })
    return saving
  }
  // What goes wrong here is heard by the next who awaits a save.
  const streaming = setInterval(() => void save().catch(() => {}), STREAM_MS)
  try {
    for await (const target of crawl.targets()) {
      stop.throwIfAborted()
      batch.push(target)
      if (batch.length >= BATCH) await save()
    }
    await save()
  } catch (error) {
    if (stop.aborted) throw error
    await save().catch(() => {})
    throw planningError(crawl.source, error)
  } finally {
    clearInterval(streaming)
  }
  await whenAvailable(() => store.finishPlanning(run), stop)
  return added
}

function planningError(source: string, thrown: unknown): UnstuckError {
  const error = toError(thrown)
  if (error instanceof UnstuckError && !(error instanceof UsageError)) return error
  const what =
    error instanceof UsageError
      ? error.message
      : `targets() of ${source} threw: ${messageOf(error).replace(/\.$/, '')}.`
  const then = 'Nothing is lost: mend it, and the next `unstuck work` asks it again.'
  return new UsageError(`${what} ${then}`, { cause: error })
}
