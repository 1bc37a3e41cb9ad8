import { messageOf, toError, UnstuckError, UsageError } from '../model/errors.ts'
import type { RunId } from '../model/id.ts'
import type { TargetInput } from '../model/target.ts'
import type { Store } from '../store/store.ts'
import { withRetry } from '../store/open.ts'
import { canonicalUrl } from '../model/url.ts'
import type { CrawlDefinition } from './crawl.ts'
import type { NewTarget } from './crawl-options.ts'

const BATCH_SIZE = 1_000
/** A smaller batch is saved after this time, so that work begins while `targets()` still yields. */
const FLUSH_MS = 200

/**
 * Saves the targets of a crawl, batch by batch, then marks the run as planned. Planning that was interrupted starts over:
 * the same key is the same target. Returns how many targets were new.
 */
export async function planRun(
  store: Store,
  crawl: CrawlDefinition,
  run: RunId,
  signal: AbortSignal,
  onProgress: (added: number) => void = () => {},
): Promise<number> {
  let added = 0
  let batch: TargetInput[] = []
  let saving = Promise.resolve()
  const save = (): Promise<void> => {
    const targets = batch
    batch = []
    saving = saving.then(async () => {
      if (targets.length === 0) return
      added += await withRetry(() => store.plan(run, targets), signal)
      onProgress(added)
    })
    return saving
  }
  // An error of this save is thrown by the next one that is awaited.
  const flushTimer = setInterval(() => void save().catch(() => {}), FLUSH_MS)
  try {
    const input = (await withRetry(() => store.run(run), signal))?.input ?? null
    for await (const target of crawl.targets({ run, input, signal })) {
      signal.throwIfAborted()
      batch.push(toTargetInput(target))
      if (batch.length >= BATCH_SIZE) await save()
    }
    await save()
  } catch (error) {
    if (signal.aborted) throw error
    await save().catch(() => {})
    throw planningError(crawl.source, error)
  } finally {
    clearInterval(flushTimer)
  }
  await withRetry(() => store.finishPlanning(run), signal)
  return added
}

/** An address alone is a target too: its canonical form is the key. */
function toTargetInput(target: NewTarget<unknown>): TargetInput {
  const isAddress = typeof target === 'string' || target instanceof URL
  // The store refuses what is no object.
  if (!isAddress && (typeof target !== 'object' || target === null)) return target
  const { key, url, ...rest } = isAddress ? { key: undefined, url: target } : target
  const address = url === undefined ? undefined : String(url)
  const ownKey = key ?? (address === undefined ? undefined : (canonicalUrl(address) ?? address))
  return { ...rest, key: ownKey!, ...(address !== undefined && { url: address }) }
}

function planningError(source: string, thrown: unknown): UnstuckError {
  const error = toError(thrown)
  if (error instanceof UnstuckError && !(error instanceof UsageError)) return error
  const what =
    error instanceof UsageError
      ? error.message
      : `targets() of ${source} threw: ${messageOf(error).replace(/\.$/, '')}.`
  const then = 'Nothing is lost: fix it, and the next `unstuck work` calls it again.'
  return new UsageError(`${what} ${then}`, { cause: error })
}
