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
  /** Only items for the same store can be saved with it. */
  readonly store: Store
  readonly claim: ClaimedTarget
  readonly request: StoredRequest
  /** Its handler was called; before that it is only prefetched. */
  isStarted = false
  /** Its end is being saved: a claim that the database no longer has was ended, not taken. */
  isEnding = false
  /**
   * `saved`: items pushed later are saved alone. `taken`: its handler still runs here, but another process has claimed it and
   * pushes the same items. `over`: its handler here has ended, and its next attempt pushes the same items.
   */
  state: 'held' | 'saved' | 'taken' | 'over' = 'held'
  /** Saved with the end of the request, or not at all. */
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
  /** The running code certainly works on it. Without it that is only likely: an asynchronous context is inherited. */
  readonly isBound?: boolean
}

/** The request that the running code works on. */
export const currentTask = new AsyncLocalStorage<HandlerTask>()

/** Binds the function to the current request, wherever and whenever it is called. */
export function bindToTask<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R {
  const task = currentTask.getStore()
  if (!task) return call
  return (...args) => currentTask.run({ request: task.request, isBound: true }, () => call(...args))
}

/**
 * Pushes items. Those of a request's handler are saved with the end of the request, or not at all; all others at once. After
 * an attempt, items from its context may belong to another request, so they are saved: an item twice is better than none.
 * While its handler still runs they are most likely its own, and are dropped if the request was taken.
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
    session.log(`${request.request.url} is no longer claimed here: ${entries.length} items dropped`)
  } else {
    // With a key each, so that a call with a lost response can be repeated.
    const call = newId()
    const sent = entries.map(({ key, data }, n) => ({ key: key ?? `push ${call} ${n}`, data }))
    const { run, group } = request?.claim ?? {}
    await session.store.append(id, sent, run === undefined ? null : { run, group: group ?? null })
  }
}

/** The next attempt pushes the same items again. */
function isLate({ state }: ClaimedRequest): boolean {
  return state === 'taken' || (state === 'over' && currentTask.getStore()?.isBound === true)
}

/** The request that is being handled, if it is in the same store. */
function currentRequest({ store }: CrawleeSession): ClaimedRequest | null {
  const request = currentTask.getStore()?.request ?? null
  return request?.store === store ? request : null
}

/** An empty key counts as none: otherwise all items without a key would become one. */
function toItemKey(key: unknown): string | null {
  if (key === undefined || key === null || key === '' || Number.isNaN(key)) return null
  if (typeof key !== 'string' && typeof key !== 'number')
    throw new UsageError(
      `itemKey() must return a text, a number, or undefined for no key, not ${typeof key}.`,
    )
  return boundedKey(escapeText(String(key)))
}
