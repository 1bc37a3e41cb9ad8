import { AsyncLocalStorage } from 'node:async_hooks'
import type { ClaimedTarget } from '../../core/model/claim.ts'
import type { Id } from '../../core/model/id.ts'
import type { Store } from '../../core/store/store.ts'
import type { DatasetEntry } from './store/store.ts'
import { claimToRequest, type StoredRequest } from './request.ts'

export type PushedEntry = DatasetEntry & { readonly dataset: Id }

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
  readonly entries: PushedEntry[] = []

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

/** The outcome of an attempt. `error`: why it was given up or put back. */
export type RequestResult =
  | { readonly kind: 'handled' }
  | { readonly kind: 'given up'; readonly error: string }
  | { readonly kind: 'put back'; readonly error: string; readonly forefront: boolean }
