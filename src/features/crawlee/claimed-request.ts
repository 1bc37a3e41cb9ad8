import { AsyncLocalStorage } from 'node:async_hooks'
import type { ClaimedTarget } from '../../core/model/claim.ts'
import { newId } from '../../core/model/id.ts'
import { UsageError } from '../../core/model/errors.ts'
import { boundedKey } from '../../core/model/item.ts'
import type { Store } from '../../core/store/store.ts'
import type { DatasetEntry, Entry, Storage } from './store/store.ts'
import type { CrawleeSession } from './session.ts'
import { escapeText } from './escape.ts'
import { claimToRequest, type StoredRequest } from './request.ts'

/** A request that this process has claimed, and what its handler has pushed so far. */
export class ClaimedRequest {
  /** Where it is kept: only what goes there can be saved with it. */
  readonly store: Store
  readonly claim: ClaimedTarget
  readonly request: StoredRequest
  /** Its handler has it: until then it was only fetched ahead. */
  isStarted = false
  /** Its end is on its way to the database: a claim that is over there by now was ended, and not taken. */
  isEnding = false
  /**
   * `saved`: what is pushed from now on is on its own. `taken`: another process has it while its handler still runs here, and
   * pushes the same again. `over`: so will its next attempt, but its handler here has ended.
   */
  state: 'held' | 'saved' | 'taken' | 'over' = 'held'
  /** Saved together with the request's end, or not at all. */
  readonly entries: Entry[] = []

  constructor(store: Store, claimed: ClaimedTarget) {
    this.store = store
    this.claim = claimed
    this.request = claimToRequest(claimed)
  }
}

/** One call of a request's handler and what goes with it. */
export type HandlerTask = {
  /** Filled when it fetches its request. */
  request: ClaimedRequest | null
  /** It is known that the code at hand works on it. Else that is only likely: a context is inherited by all that it begins. */
  readonly isBound?: boolean
}

/** Which request the code at hand works on. */
export const currentTask = new AsyncLocalStorage<HandlerTask>()

/** Binds the function to the current request, wherever and whenever it is called. */
export function bindToTask<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R {
  const task = currentTask.getStore()
  if (!task) return call
  return (...args) => currentTask.run({ request: task.request, isBound: true }, () => call(...args))
}

/**
 * What a request's handler pushes is saved with the request's end, or not at all; everything else at once. When a try is
 * over, what else comes from its context may be of another request, pushed by something that this one began: it is saved, since
 * an item twice is better than none. While its handler still runs it is most likely its own, and dropped if it was taken.
 */
export async function push(
  session: CrawleeSession,
  { id, name }: Storage,
  items: readonly Record<string, unknown>[],
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
    await session.store.append(id, sent)
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
