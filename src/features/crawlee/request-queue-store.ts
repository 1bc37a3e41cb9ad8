import type { Checkpoint } from '../../core/model/checkpoint.ts'
import type { ClaimedTarget, Outcome } from '../../core/model/claim.ts'
import {
  LeaseLostError,
  messageOf,
  PageRejectedError,
  UsageError,
} from '../../core/model/errors.ts'
import { shortId } from '../../core/model/id.ts'
import { isLive, countOpenTargets, countTargets, type Run } from '../../core/model/run.ts'
import type { Target } from '../../core/model/target.ts'
import { makeCheckpoint, type PageReport } from '../../core/worker/page.ts'
import { withRetry } from '../../core/store/open.ts'
import type { Failure } from '../../core/store/store.ts'
import type { Storage, StorageDatabase } from './store/store.ts'
import type { ClaimedRequest } from './claimed-request.ts'
import { QueueRun, type QueueRunOptions } from './queue-run.ts'
import { QueueWorker, type QueueWorkerOptions } from './queue-worker.ts'
import { LruMap } from './lru-map.ts'
import {
  isHandled,
  type NewRequest,
  requestId,
  requestToTarget,
  type StoredRequest,
  targetKey,
  targetToRequest,
  toStored,
} from './request.ts'

export type RequestQueueStoreOptions = QueueRunOptions &
  Omit<QueueWorkerOptions, 'source' | 'onCancelled'> & {
    readonly store: StorageDatabase
    /** Nothing more is claimed. */
    readonly isStopping: () => boolean
    /** Nothing can be claimed, because its run was ended before this process started. Called once. */
    readonly onRunEnded: (run: Run, left: number) => void
  }

/** In Crawlee's words. */
type AddedRequest = {
  requestId: string
  uniqueKey: string
  wasAlreadyPresent: boolean
  wasAlreadyHandled: boolean
}
export type RequestCounts = {
  readonly total: number
  readonly handled: number
  readonly pending: number
}

/** The outcome of an attempt. `error`: why it was given up or put back. */
export type RequestResult =
  | { readonly kind: 'handled' }
  | { readonly kind: 'given up'; readonly error: string }
  | { readonly kind: 'put back'; readonly error: string; readonly forefront: boolean }

/** So many keys are remembered by their id. */
const ADDED_MAX = 10_000

/** A queue of requests, which are targets of its run: claimed, fenced and recovered as any others. */
export class RequestQueueStore {
  readonly queue: Storage
  readonly worker: QueueWorker
  readonly #options: RequestQueueStoreOptions
  readonly #run: QueueRun
  /** Unique keys by their ids, which are digests of them. */
  readonly #added = new LruMap<string>(ADDED_MAX)
  #isEndReported = false

  constructor(queue: Storage, options: RequestQueueStoreOptions) {
    this.queue = queue
    this.#options = options
    this.#run = new QueueRun(queue, options)
    this.worker = new QueueWorker({
      ...options,
      source: this.#run.source,
      onCancelled: () => this.#run.markCancelled(),
    })
  }

  get source(): string {
    return this.#run.source
  }

  /** The run that its requests are targets of; null before the first. */
  run(): Promise<Run | null> {
    return this.#run.load()
  }

  async counts(): Promise<RequestCounts> {
    const run = await this.run()
    if (!run) return { total: 0, handled: 0, pending: 0 }
    const [total, pending] = [countTargets(run.counts), countOpenTargets(run.counts)]
    return { total, handled: total - pending, pending }
  }

  /**
   * Adds requests in this order; one whose key exists stays as it is. An ended run with some of these left is reopened.
   */
  async add(requests: readonly NewRequest[], forefront: boolean): Promise<AddedRequest[]> {
    const keys = requests.map(({ uniqueKey }) => targetKey(uniqueKey))
    const known = new Map((await this.#run.find(keys)).map((target) => [target.key, target]))
    const fresh = requests.filter((_, n) => !known.has(keys[n]!))
    if (fresh.length > 0) {
      await this.#run.plan(fresh.map((one) => requestToTarget(one, forefront)))
      if (forefront) this.worker.expectForefront(fresh.length)
    } else if (!this.worker.isActive && known.values().some((target) => !isHandled(target)))
      await this.#run.resume()
    const seen = new Set(known.keys())
    return requests.map(({ uniqueKey }, n) => {
      const [key, target] = [keys[n]!, known.get(keys[n]!)]
      const wasAlreadyPresent = seen.has(key)
      seen.add(key)
      const id = requestId(uniqueKey)
      this.#added.set(id, uniqueKey)
      const wasAlreadyHandled = target !== undefined && isHandled(target)
      return { requestId: id, uniqueKey, wasAlreadyPresent, wasAlreadyHandled }
    })
  }

  /** `left`: requests beyond those claimed now are waiting or claimed elsewhere. */
  async claim(limit: number): Promise<{ claimed: ClaimedRequest[]; hasMore: boolean }> {
    if (this.#options.isStopping()) return { claimed: [], hasMore: true }
    const { claimed, requested } = await this.worker.claim(limit)
    if (claimed.length > 0 && claimed.length === requested) return { claimed, hasMore: true }
    const run = await this.run()
    const open = run ? countOpenTargets(run.counts) : 0
    if (!run || !isLive(run.status)) {
      if (run && open > 0) this.#reportEnd(run, open)
      return { claimed, hasMore: false }
    }
    if (open === 0) await this.#options.store.settle(run.id)
    return { claimed, hasMore: open > claimed.length }
  }

  /** The claimed request with this id; the newest, if it was lost and claimed again meanwhile. */
  claimed(id: string): ClaimedRequest | undefined {
    return this.worker.claimed.findLast(({ request }) => request.id === id)
  }

  /** Finds a request by its unique key, claimed or not. */
  async find(uniqueKey: string): Promise<Target | null> {
    return (await this.#run.find([targetKey(uniqueKey)]))[0] ?? null
  }

  /** Finds a request by id, claimed or not. Reads the whole queue unless this process added it recently. */
  async findById(id: string): Promise<StoredRequest | null> {
    const uniqueKey = this.#added.get(id)
    const target = uniqueKey === undefined ? null : await this.find(uniqueKey)
    if (target) return targetToRequest(target)
    for await (const request of this.#allRequests()) if (request.id === id) return request
    return null
  }

  /** Requests that wait, in the order in which they are claimed, and those that are claimed now. */
  async pending(limit: number): Promise<StoredRequest[]> {
    const run = await this.run()
    if (!run) return []
    const keys = await this.#options.store.claimOrder(run.id, limit)
    const targets = await this.#run.find(keys)
    const byKey = new Map(targets.map((target) => [target.key, target]))
    return keys.flatMap((key) => byKey.get(key) ?? []).map(targetToRequest)
  }

  /** Ends an attempt: handled, failed, or queued again. Returns false if the claim was lost, and nothing was saved. */
  finish(claimed: ClaimedRequest, request: NewRequest, result: RequestResult): Promise<boolean> {
    if (result.kind === 'handled') return this.#finishHandled(claimed, request)
    const { error } = result
    const becomes =
      result.kind === 'put back' ? { retryInMs: 0, forefront: result.forefront } : 'failed'
    return this.#fail(claimed, request, { error, becomes })
  }

  /** A crawler has reached its limit. Ends the run unless others work on the rest. */
  async endAtLimit(limit: string): Promise<void> {
    const run = await this.run()
    if (!run || run.counts.targets.in_progress > 0) return
    const [because, left] = [`${limit} was reached`, countOpenTargets(run.counts)]
    if (left > 0 && (await this.#run.end(because)))
      this.#options.log(`run ${shortId(run.id)} is ended with ${left} requests left: ${because}`)
  }

  async drop(): Promise<void> {
    await this.#run.end('its queue was dropped')
    await this.#options.store.dropStorage(this.queue.id)
  }

  /** Saves its end and the items that it pushed in one transaction. */
  async #finishHandled(claimed: ClaimedRequest, request: NewRequest): Promise<boolean> {
    const { store } = this.#options
    const { claim } = claimed
    const entries = [...claimed.entries]
    const append = entries.length > 0 ? store.appending(claim.run, entries) : undefined
    const page = claim.page + 1
    const report = { page, next: null, done: true }
    const checkpoint = this.#checkpoint(claim, report, toStored(request))
    const isSaved = await this.#save(claimed, 'saved', () =>
      this.worker.measure('checkpoint', () => store.checkpoint([checkpoint], append)),
    )
    if (!isSaved) return false
    // Pushed without await while this was being saved.
    for (const late of claimed.entries.slice(entries.length))
      await store.append(late.dataset, [late])
    return true
  }

  /** Keeps the request as it is now, or as it was claimed if it has grown too large. */
  #checkpoint(claimed: ClaimedTarget, report: PageReport, cursor: unknown): Checkpoint {
    try {
      return makeCheckpoint(claimed, claimed, { ...report, cursor })
    } catch (error) {
      if (!(error instanceof PageRejectedError)) throw error
      this.#options.log(error.message)
      return makeCheckpoint(claimed, claimed, report)
    }
  }

  /** Keeps the request as it is now, and drops its items: the next attempt pushes them again. */
  async #fail(
    claimed: ClaimedRequest,
    request: NewRequest,
    failureOptions: Pick<Failure, 'error' | 'becomes'>,
  ): Promise<boolean> {
    const { claim } = claimed
    const fail = (failure: typeof failureOptions & { nextCursor?: unknown }): Promise<boolean> =>
      this.#save(claimed, failure.becomes === 'failed' ? 'saved' : 'over', () =>
        this.#options.store.fail([{ ...claim, ...failure }]),
      )
    try {
      return await fail({ ...failureOptions, nextCursor: toStored(request) })
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      // It cannot be stored as it is now, and so not be tried again.
      return fail({ ...failureOptions, error: messageOf(error), becomes: 'failed' })
    }
  }

  async #save<T>(
    claimed: ClaimedRequest,
    as: 'saved' | 'over',
    save: () => Promise<Outcome<T>[]>,
  ): Promise<boolean> {
    claimed.isEnding = true
    try {
      const [outcome] = await withRetry(save)
      if (!this.#isOk(claimed, outcome!)) return false
      this.worker.endClaim(claimed, as)
      return true
    } finally {
      claimed.isEnding = false
    }
  }

  #reportEnd(run: Run, left: number): void {
    if (this.#isEndReported || this.#run.isCancelled || this.worker.claimed.length > 0) return
    this.#isEndReported = true
    this.#options.onRunEnded(run, left)
  }

  /** A lost claim is an ordinary event: its items are dropped, and the crawl continues. */
  #isOk<T>(
    claimed: ClaimedRequest,
    outcome: Outcome<T>,
  ): outcome is Extract<Outcome<T>, { ok: true }> {
    if (outcome.ok) return true
    if (!(outcome.error instanceof LeaseLostError)) throw outcome.error
    this.#options.log(`${claimed.request.url}: ${outcome.error.message}`)
    this.worker.endClaim(claimed, 'over')
    return false
  }

  async *#allRequests(): AsyncGenerator<StoredRequest> {
    const run = await this.run()
    if (!run) return
    const { store } = this.#options
    for (let after: string | undefined; ;) {
      const page = await store.targets(run.id, { after, limit: 200, whole: true })
      yield* page.items.map(targetToRequest)
      if (page.next === null) return
      after = page.next
    }
  }
}
