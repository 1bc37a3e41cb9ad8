import type { Checkpoint } from '../../core/model/checkpoint.ts'
import type { Claimed, Outcome } from '../../core/model/claim.ts'
import { LeaseLost, messageOf, PageRejected, UsageError } from '../../core/model/errors.ts'
import { shortId } from '../../core/model/id.ts'
import { isLive, openTargets, totalTargets, type Run } from '../../core/model/run.ts'
import type { Target } from '../../core/model/target.ts'
import { makeCheckpoint, type PageReport } from '../../core/worker/page.ts'
import { whenAvailable } from '../../core/store/open.ts'
import type { Storage } from '../../core/store/store.ts'
import type { Ending } from './ending.ts'
import type { InHand } from './claimed-request.ts'
import { QueueRun, type QueueRunOptions } from './queue-run.ts'
import { QueueWorker, type QueueWorkerOptions } from './queue-worker.ts'
import { Recent } from './lru-map.ts'
import { asRequest, isHandled, keep, requestId, targetKey, toTarget } from './request.ts'
import type { KeptRequest, NewRequest } from './request.ts'

export type RequestBookOptions = QueueRunOptions &
  Omit<QueueWorkerOptions, 'source' | 'onCancelled'> & {
    /** No more is to be claimed here. */
    readonly isStopping: () => boolean
    /** Nothing can be claimed, because its run was ended before this process began. Told once. */
    readonly onEnded: (run: Run, left: number) => void
  }

export type Added = {
  readonly id: string
  readonly uniqueKey: string
  readonly wasThere: boolean
  readonly wasHandled: boolean
}
export type RequestCounts = {
  readonly total: number
  readonly handled: number
  readonly pending: number
}

/** Of so many a process knows the key by the id. */
const ADDED_MAX = 10_000

/** A queue of requests, which are targets of its run: claimed, fenced and recovered as any others. */
export class RequestBook {
  readonly queue: Storage
  readonly worker: QueueWorker
  readonly #options: RequestBookOptions
  readonly #run: QueueRun
  /** Unique keys by their ids, which are digests of them. */
  readonly #added = new Recent<string>(ADDED_MAX)
  #isEndTold = false

  constructor(queue: Storage, options: RequestBookOptions) {
    this.queue = queue
    this.#options = options
    this.#run = new QueueRun(queue, options)
    this.worker = new QueueWorker({
      ...options,
      source: this.#run.source,
      onCancelled: () => this.#run.cancelled(),
    })
  }

  get source(): string {
    return this.#run.source
  }

  /** The run that its requests are targets of; null before the first. */
  run(): Promise<Run | null> {
    return this.#run.look()
  }

  async counts(): Promise<RequestCounts> {
    const run = await this.run()
    if (!run) return { total: 0, handled: 0, pending: 0 }
    const [total, pending] = [totalTargets(run.counts), openTargets(run.counts)]
    return { total, handled: total - pending, pending }
  }

  /**
   * In the order given; one whose key is there already stays as it is. A run that was ended with some of these left is
   * taken up again: who adds them wants them done.
   */
  async add(requests: readonly NewRequest[], forefront: boolean): Promise<Added[]> {
    const keys = requests.map(({ uniqueKey }) => targetKey(uniqueKey))
    const known = new Map((await this.#run.find(keys)).map((target) => [target.key, target]))
    const fresh = requests.filter((_, n) => !known.has(keys[n]!))
    if (fresh.length > 0) {
      await this.#run.plan(fresh.map((one) => toTarget(one, forefront)))
      if (forefront) this.worker.expectInFront(fresh.length)
    } else if (!this.worker.isAlive && known.values().some((target) => !isHandled(target)))
      await this.#run.wake()
    const seen = new Set(known.keys())
    return requests.map(({ uniqueKey }, n) => {
      const [key, target] = [keys[n]!, known.get(keys[n]!)]
      const wasThere = seen.has(key)
      seen.add(key)
      const id = requestId(uniqueKey)
      this.#added.set(id, uniqueKey)
      const wasHandled = target !== undefined && isHandled(target)
      return { id, uniqueKey, wasThere, wasHandled }
    })
  }

  /** `left`: beyond what was claimed now there are requests that wait, or that somebody has in hand. */
  async claim(limit: number): Promise<{ claimed: InHand[]; left: boolean }> {
    if (this.#options.isStopping()) return { claimed: [], left: true }
    const { claimed, asked } = await this.worker.claim(limit)
    if (claimed.length > 0 && claimed.length === asked) return { claimed, left: true }
    const run = await this.run()
    const open = run ? openTargets(run.counts) : 0
    if (!run || !isLive(run.status)) {
      if (run && open > 0) this.#tellEnd(run, open)
      return { claimed, left: false }
    }
    if (open === 0) await whenAvailable(() => this.#options.store.settle(run.id))
    return { claimed, left: open > claimed.length }
  }

  /** The one in hand with this id: the newest, where one was taken and came back before anybody noticed. */
  inHand(id: string): InHand | undefined {
    return this.worker.inHand.findLast(({ request }) => request.id === id)
  }

  /** By its unique key, whoever has it. */
  async find(uniqueKey: string): Promise<Target | null> {
    return (await this.#run.find([targetKey(uniqueKey)]))[0] ?? null
  }

  /** By its id, whoever has it. Of one that this process has not added of late, it reads the whole queue. */
  async search(id: string): Promise<KeptRequest | null> {
    const uniqueKey = this.#added.get(id)
    const target = uniqueKey === undefined ? null : await this.find(uniqueKey)
    if (target) return asRequest(target)
    for await (const request of this.#all()) if (request.id === id) return request
    return null
  }

  /** Those that wait or are in hand, in no promised order. For people. */
  async pending(limit: number): Promise<KeptRequest[]> {
    const found: KeptRequest[] = []
    for await (const request of this.#all(['planned', 'in_progress'])) {
      if (found.length >= limit) break
      found.push(request)
    }
    return found
  }

  /** The end of a try: handled, given up, or back in line. False: it is no longer ours, and nothing was saved. */
  end(inHand: InHand, request: NewRequest, ending: Ending): Promise<boolean> {
    if (ending.as === 'handled') return this.#handled(inHand, request)
    const { error } = ending
    const how =
      ending.as === 'put back'
        ? { retryInMs: 0, forefront: ending.forefront }
        : { retryInMs: null, forefront: false }
    return this.#fail(inHand, request, { error, ...how })
  }

  /** A crawler has done as much as it was asked to. Others may be at work on the rest. */
  async endAtLimit(limit: string): Promise<void> {
    const run = await this.run()
    if (!run || run.counts.targets.in_progress > 0) return
    const [because, left] = [`${limit} was reached`, openTargets(run.counts)]
    if (left > 0 && (await this.#run.end(because)))
      this.#options.log(`run ${shortId(run.id)} is ended with ${left} requests left: ${because}`)
  }

  async drop(): Promise<void> {
    await this.#run.end('its queue was dropped')
    await whenAvailable(() => this.#options.store.dropStorage(this.queue.id))
  }

  /** Its end and all that it pushed, in one transaction. */
  async #handled(inHand: InHand, request: NewRequest): Promise<boolean> {
    const { store } = this.#options
    const { claimed } = inHand
    const entries = [...inHand.entries]
    const saving = entries.length > 0 ? store.appending(claimed.run, entries) : undefined
    const page = claimed.page + 1
    const report = { page, next: null, done: true }
    const checkpoint = this.#checkpoint(claimed, report, keep(request))
    const isSaved = await this.#save(inHand, 'saved', () =>
      this.worker.store.checkpoint([checkpoint], saving),
    )
    if (!isSaved) return false
    // Pushed by what nobody waited for, while this was being saved.
    for (const late of inHand.entries.slice(entries.length))
      await whenAvailable(() => store.append(late.dataset, [late]))
    return true
  }

  /** With the request as it is now, or as it was when it came, should it have grown too large since. */
  #checkpoint(claimed: Claimed, report: PageReport, cursor: unknown): Checkpoint {
    try {
      return makeCheckpoint(claimed, claimed, { ...report, cursor })
    } catch (error) {
      if (!(error instanceof PageRejected)) throw error
      this.#options.log(error.message)
      return makeCheckpoint(claimed, claimed, report)
    }
  }

  /** As it is now: what it pushed is dropped, and pushed again by the next try if there is one. */
  async #fail(
    inHand: InHand,
    request: NewRequest,
    how: { error: string; retryInMs: number | null; forefront: boolean },
  ): Promise<boolean> {
    const { claimed } = inHand
    const fail = (failure: typeof how & { nextCursor?: unknown }): Promise<boolean> =>
      this.#save(inHand, failure.retryInMs === null ? 'saved' : 'over', () =>
        this.worker.store.fail([{ ...claimed, ...failure }]),
      )
    try {
      return await fail({ ...how, nextCursor: keep(request) })
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      // It cannot be kept as it is now, so it cannot be tried again as it is now.
      return fail({ ...how, error: messageOf(error), retryInMs: null })
    }
  }

  async #save<T>(
    inHand: InHand,
    as: 'saved' | 'over',
    save: () => Promise<Outcome<T>[]>,
  ): Promise<boolean> {
    inHand.isEnding = true
    try {
      const [outcome] = await whenAvailable(save)
      if (!this.#isOk(inHand, outcome!)) return false
      this.worker.end(inHand, as)
      return true
    } finally {
      inHand.isEnding = false
    }
  }

  #tellEnd(run: Run, left: number): void {
    if (this.#isEndTold || this.#run.isCancelled || this.worker.inHand.length > 0) return
    this.#isEndTold = true
    this.#options.onEnded(run, left)
  }

  /** A lost claim is weather: what it had is dropped, and the crawl goes on. */
  #isOk<T>(inHand: InHand, outcome: Outcome<T>): outcome is Extract<Outcome<T>, { ok: true }> {
    if (outcome.ok) return true
    if (!(outcome.error instanceof LeaseLost)) throw outcome.error
    this.#options.log(`${inHand.request.url}: ${outcome.error.message}`)
    this.worker.end(inHand, 'over')
    return false
  }

  async *#all(statuses?: Target['status'][]): AsyncGenerator<KeptRequest> {
    const run = await this.run()
    if (!run) return
    const { store } = this.#options
    for (let after: string | undefined; ;) {
      const page = await whenAvailable(() =>
        store.targets(run.id, { statuses, after, limit: 200, whole: true }),
      )
      yield* page.items.map(asRequest)
      if (page.next === null) return
      after = page.next
    }
  }
}
