import { UsageError } from '../../core/model/errors.ts'
import { newId } from '../../core/model/id.ts'
import { boundedKey } from '../../core/model/item.ts'
import { withRetry } from '../../core/store/open.ts'
import type { DatasetEntry, Storage } from './store/store.ts'
import type { CrawleeSession } from './session.ts'
import { escapeText } from './escape.ts'
import { currentTask, type ClaimedRequest } from './claimed-request.ts'

export type PushedItem = Record<string, unknown>

/**
 * What a request's handler pushes is saved with the request's end, or not at all; everything else at once. When a try is
 * over, what else comes from its context may be of another request, pushed by something that this one began: it is saved, since
 * an item twice is better than none. While its handler still runs it is most likely its own, and dropped if it was taken.
 */
export async function push(
  session: CrawleeSession,
  { id, name }: Storage,
  items: readonly PushedItem[],
): Promise<void> {
  const entries = items.map((item): DatasetEntry => {
    return { key: toItemKey(session.itemKey(item, name)), data: JSON.stringify(item) }
  })
  const request = currentRequest(session)
  if (request?.state === 'held') {
    for (const entry of entries) request.entries.push({ ...entry, dataset: id })
  } else if (request && isLate(request)) {
    session.log(`${request.request.url} is not in hand any more: ${entries.length} items dropped`)
  } else {
    // With a key each, so that a call with a lost response can be repeated.
    const call = newId()
    const sent = entries.map(({ key, data }, n) => ({ key: key ?? `push ${call} ${n}`, data }))
    await withRetry(() => session.store.append(id, sent))
  }
}

/** The next attempt pushes the same items again. */
function isLate({ state }: ClaimedRequest): boolean {
  return state === 'taken' || (state === 'over' && currentTask.getStore()?.isBound === true)
}

/** The request that is being handled, if it is kept where this is. */
function currentRequest({ store }: CrawleeSession): ClaimedRequest | null {
  const request = currentTask.getStore()?.request ?? null
  return request?.store === store ? request : null
}

/** An empty key counts as none: otherwise all items without a key would become one. */
function toItemKey(key: unknown): string | null {
  if (key === undefined || key === null || key === '' || Number.isNaN(key)) return null
  if (typeof key !== 'string' && typeof key !== 'number')
    throw new UsageError(
      `itemKey() answers a text, a number, or undefined for no key, not ${typeof key}.`,
    )
  return boundedKey(escapeText(String(key)))
}
