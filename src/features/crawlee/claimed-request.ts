import { AsyncLocalStorage } from 'node:async_hooks'
import type { Claimed } from '../../core/model/claim.ts'
import type { Id } from '../../core/model/id.ts'
import type { DatasetEntry, Store } from '../../core/store/store.ts'
import { toRequest, type KeptRequest } from './request.ts'

export type PushedEntry = DatasetEntry & { readonly dataset: Id }

/** A request that this process has claimed, and what its handler has pushed so far. */
export class InHand {
  /** Where it is kept: only what goes there can be saved with it. */
  readonly store: Store
  readonly claimed: Claimed
  readonly request: KeptRequest
  /** Its handler has it: until then it was only fetched ahead. */
  isBegun = false
  /** Its end is on its way to the database: a claim that is over there by now was ended, and not taken. */
  isEnding = false
  /**
   * `saved`: what is pushed from now on is on its own. `taken`: somebody else has it while its handler still runs here, and
   * pushes the same again. `over`: so will its next try, but its handler here has ended.
   */
  state: 'held' | 'saved' | 'taken' | 'over' = 'held'
  /** Saved together with the request's end, or not at all. */
  readonly entries: PushedEntry[] = []

  constructor(store: Store, claimed: Claimed) {
    this.store = store
    this.claimed = claimed
    this.request = toRequest(claimed)
  }
}

/** One call of a request's handler and what goes with it. */
export type Task = {
  /** Filled when it fetches its request. */
  request: InHand | null
  /** It is known that the code at hand works on it. Else that is only likely: a context is inherited by all that it begins. */
  readonly isSure?: boolean
}

/** Which request the code at hand works on. */
export const currentTask = new AsyncLocalStorage<Task>()

/** The same function, for the request that is being worked on now, whoever calls it and whenever. */
export function boundToTask<A extends unknown[], R>(act: (...args: A) => R): (...args: A) => R {
  const task = currentTask.getStore()
  if (!task) return act
  return (...args) => currentTask.run({ request: task.request, isSure: true }, () => act(...args))
}
