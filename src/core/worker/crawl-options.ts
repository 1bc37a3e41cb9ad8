import type { InTransaction } from '../model/checkpoint.ts'
import type { NewItem } from '../model/item.ts'
import type { Duration } from '../model/time.ts'

/** A value or a promise of it. */
export type Awaitable<V> = V | Promise<V>

/** What `targets` gets. */
export type PlanningContext = {
  /** The id of the run that is planned. */
  readonly run: string
  /** What the run was queued with: `unstuck enqueue --input`; null if nothing. */
  readonly input: unknown
  /** Aborts when the worker must stop. */
  readonly signal: AbortSignal
}

/** What `setup` gets. */
export type SetupContext = {
  /** Aborts when the worker must stop. */
  readonly signal: AbortSignal
}

/** The targets of a run: a list, or a generator for many. */
export type Targets<T> = Iterable<NewTarget<T>> | AsyncIterable<NewTarget<T>>

/** A target: an address, whose canonical form is its key, or an object. If one target has `data`, all must. */
export type NewTarget<T = undefined> =
  | (undefined extends T ? string | URL : never)
  | (NewTargetAddress & NewTargetGroup & (undefined extends T ? { data?: T } : { data: T }))

/** The key of a target, its address, or both. */
export type NewTargetAddress =
  | {
      /** Names the target within its run. */
      key: string
      /** The address of its first page. */
      url?: string | URL | undefined
    }
  | {
      /** Names the target within its run. @default the canonical form of `url` */
      key?: string | undefined
      /** The address of its first page. */
      url: string | URL
    }

/** The group of a target. */
export type NewTargetGroup = {
  /** Targets of one group are counted together and can have a policy of their own. @default none */
  group?: string | undefined
}

/** What `page` gets. */
export type PageContext<C = unknown, T = undefined, R = undefined> = {
  /** The id of the run. */
  readonly run: string
  /** The target that the page belongs to. */
  readonly target: PageTarget<T>
  /** This page's address: `next` of the last page, else the target's `url`. Throws if there is neither. */
  readonly url: string
  /** Counts from 1. */
  readonly page: number
  /** What the last page returned, else `initialCursor`. */
  readonly cursor: C
  /** What the last page returned; null before. */
  readonly lastItemId: string | null
  /** 1, and one more after each error of this page. */
  readonly attempt: number
  /** What `setup` returned. */
  readonly resources: R
  /** Aborts when the worker must stop now or another worker has the target. Pass it to `fetch`. */
  readonly signal: AbortSignal
  /** Writes a line to the log of the worker. */
  log(message: string, fields?: Readonly<Record<string, unknown>>): void
}

/** A target as `page` sees it. */
export type PageTarget<T = undefined> = {
  /** Its id. */
  readonly id: string
  /** Its key within the run. */
  readonly key: string
  /** Its group, if it has one. */
  readonly group: string | null
  /** Its own address, if it has one. */
  readonly url: string | null
  /** Its `data`, as planned. */
  readonly data: T
}

/** What `page` returns: the fields of the page, and either `next` or `done`. */
export type PageResult<D = unknown, C = unknown> = PageFields<D, C> & (NextPage | PageDone)

/** For crawls that follow addresses. */
export type NextPage = {
  /** The next page's address, `null` after the last. A relative one is resolved against `url`. */
  next: string | URL | null
  /** Only without `next`. */
  done?: undefined
}

/** For crawls without addresses, which keep their place in `cursor`. */
export type PageDone = {
  /** Whether this was the target's last page. */
  done: boolean
  /** Only without `done`. */
  next?: undefined
}

/** What a page brings, saved in one transaction. */
export type PageFields<D = unknown, C = unknown> = {
  /** Saved by canonical address or by `key`; one seen again is updated. @default [] */
  items?: readonly NewItem<D>[] | undefined
  /** JSON for the next page, up to 256 KB. @default unchanged */
  cursor?: C | undefined
  /** How many pages there will be. @default unchanged */
  pageTarget?: number | undefined
  /** Records left out on purpose. @default 0 */
  skipped?: number | undefined
  /** The last item, for crawls that continue by it. @default unchanged */
  lastItemId?: string | undefined
  /** Writes to your own tables in the page's transaction. @default nothing */
  inTransaction?: InTransaction | undefined
}

/** An error of a page, for `onError`. */
export type PageFailure<C = unknown, T = undefined, R = undefined> = {
  /** What was thrown. */
  readonly error: unknown
  /** 1, and one more after each error of this page. */
  readonly attempt: number
  /** What the page got. */
  readonly context: PageContext<C, T, R>
}

/**
 * What follows an error: `'retry'` after the usual pause, also beyond `policy.retries`; `'fail'` the target; `'park'` it for
 * an operator; or retry after a time.
 */
export type ErrorDecision = 'retry' | 'fail' | 'park' | RetryAfter

/** Retries a page after a time. */
export type RetryAfter = {
  /** As in `'5m'`. */
  readonly retryAfter: Duration
}
