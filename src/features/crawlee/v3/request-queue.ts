import type * as crawlee from '@crawlee/types'
import { UsageError } from '../../../core/model/errors.ts'
import type { Storage } from '../../../core/store/store.ts'
import type { Depot } from '../session.ts'
import { currentTask, type InHand } from '../claimed-request.ts'
import { sourceOf } from '../queue-run.ts'
import { requestId, type NewRequest } from '../request.ts'
import type { Added, RequestBook } from '../request-queue-store.ts'
import { storageNamed, StorageOf } from '../storage-of.ts'
import { endingOf } from './ending-of.ts'
import { factsOf, listStorages } from './storage-info.ts'

type Head = crawlee.RequestQueueHeadItem

export class RequestQueueCollection implements crawlee.RequestQueueCollectionClient {
  readonly #depot: Depot

  constructor(depot: Depot) {
    this.#depot = depot
  }

  list(): Promise<crawlee.PaginatedList<crawlee.RequestQueueInfo>> {
    return listStorages(this.#depot.store, 'queue', (one) => infoOf(this.#depot, one))
  }

  async getOrCreate(name: string): Promise<crawlee.RequestQueueInfo> {
    sourceOf(name)
    return infoOf(this.#depot, await storageNamed(this.#depot.store, 'queue', name))
  }
}

/**
 * A queue as Crawlee speaks to it. Its locks are claims: they last for as long as this process shows signs of life, and
 * no times are kept with them.
 */
export class RequestQueue implements crawlee.RequestQueueClient {
  readonly #depot: Depot
  readonly #storage: StorageOf
  /** Requests, by id, that were put back, until Crawlee asks to unlock them as well. */
  readonly #putBack = new Set<string>()

  constructor(depot: Depot, idOrName: string) {
    this.#depot = depot
    this.#storage = new StorageOf(depot.store, 'queue', idOrName)
  }

  isOf(depot: Depot): boolean {
    return this.#depot === depot
  }

  async get(): Promise<crawlee.RequestQueueInfo | undefined> {
    const found = await this.#storage.look()
    return found ? infoOf(this.#depot, found) : undefined
  }

  async update({ name }: { name?: string }): Promise<crawlee.RequestQueueInfo> {
    if (name !== undefined && (await (await this.#book()).run()))
      throw new UsageError(
        'A queue that has had requests keeps its name: its runs are known by it.',
      )
    return infoOf(this.#depot, await this.#storage.rename(name))
  }

  /** Its run is ended if it lives, and stays to be looked at. */
  async delete(): Promise<void> {
    const found = await this.#storage.look()
    if (found) await this.#depot.book(found).drop()
    await this.#storage.drop()
  }

  async listHead({ limit = 100 }: crawlee.ListOptions = {}): Promise<crawlee.QueueHead> {
    const { modifiedAt } = await this.#storage.get()
    const items = (await (await this.#book()).pending(limit)) as unknown as Head[]
    return { limit, hadMultipleClients: true, queueModifiedAt: new Date(modifiedAt), items }
  }

  async listAndLockHead({
    limit = 25,
    lockSecs,
  }: crawlee.ListAndLockOptions): Promise<crawlee.ListAndLockHeadResult> {
    const { modifiedAt } = await this.#storage.get()
    const { claimed, left } = await (await this.#book()).claim(limit)
    return {
      limit,
      lockSecs,
      hadMultipleClients: true,
      queueModifiedAt: new Date(modifiedAt),
      queueHasLockedRequests: left,
      items: claimed.map(({ request }) => request as unknown as Head),
    }
  }

  /** Called when a request goes to its handler: from here on what is pushed belongs to it. */
  async prolongRequestLock(
    id: string,
    { lockSecs }: crawlee.ProlongRequestLockOptions,
  ): Promise<crawlee.ProlongRequestLockResult> {
    const inHand = (await this.#book()).inHand(id)
    if (!inHand) throw notInHand(id)
    inHand.isBegun = true
    const task = currentTask.getStore()
    if (task) task.request = inHand
    return { lockExpiresAt: new Date(Date.now() + lockSecs * 1_000) }
  }

  /** Crawlee puts a request back and unlocks it afterwards: by then it may be in other hands. */
  async deleteRequestLock(id: string): Promise<void> {
    if (this.#putBack.delete(id)) throw notInHand(id)
    const book = await this.#book()
    const inHand = this.#inHand(book, id)
    if (inHand?.state !== 'held') throw notInHand(id)
    await book.worker.handBack([inHand])
  }

  async addRequest(
    request: crawlee.RequestSchema,
    { forefront = false }: crawlee.RequestOptions = {},
  ): Promise<crawlee.QueueOperationInfo> {
    const [added] = await (await this.#book()).add([checked(request)], forefront)
    const { uniqueKey: _, ...info } = told(added!)
    return info
  }

  async batchAddRequests(
    requests: crawlee.RequestSchema[],
    { forefront = false }: crawlee.RequestOptions = {},
  ): Promise<crawlee.BatchAddRequestsResult> {
    const added = await (await this.#book()).add(requests.map(checked), forefront)
    // Crawlee asks again for ever for what is called unprocessed here: what cannot be kept is an error.
    return { processedRequests: added.map(told), unprocessedRequests: [] }
  }

  async getRequest(id: string): Promise<crawlee.RequestOptions | undefined> {
    const book = await this.#book()
    return book.inHand(id)?.request ?? (await book.search(id)) ?? undefined
  }

  /**
   * The end of a try: handled, given up, or back in line. Crawlee takes an error from here for the end of the crawl, so
   * one whose claim was lost is answered as if somebody else had handled it, which they will.
   */
  async updateRequest(
    request: crawlee.UpdateRequestSchema,
    { forefront = false }: crawlee.RequestOptions = {},
  ): Promise<crawlee.QueueOperationInfo> {
    const [book, id] = [await this.#book(), requestId(request.uniqueKey)]
    if (request.id !== id) throw new UsageError('The id of a request comes from its unique key.')
    const inHand = this.#inHand(book, id)
    if (!inHand) return this.#notClaimed(book, request, forefront)
    const ending = endingOf(request, forefront)
    if (ending.as === 'put back') this.#putBack.add(id)
    const isOurs = inHand.state === 'held' && (await book.end(inHand, request, ending))
    if (inHand.state === 'taken') inHand.state = 'over'
    return { requestId: id, wasAlreadyPresent: true, wasAlreadyHandled: !isOurs }
  }

  deleteRequest(): Promise<never> {
    const message = 'Requests are kept. `unstuck park` sets one aside that is not wanted.'
    return Promise.reject(new UsageError(message))
  }

  async #notClaimed(
    book: RequestBook,
    request: crawlee.UpdateRequestSchema,
    forefront: boolean,
  ): Promise<crawlee.QueueOperationInfo> {
    if (!(await book.find(request.uniqueKey))) return this.addRequest(request, { forefront })
    if (!book.worker.wasInHand(request.id))
      throw new UsageError(
        `Request ${request.id} was not locked by this process. Crawlee's old queue, which knows no locks ` +
          '(experiments: { requestLocking: false }), cannot be used with this storage.',
      )
    return { requestId: request.id, wasAlreadyPresent: true, wasAlreadyHandled: true }
  }

  /** The one that this very handler was given; another may have it in hand since. */
  #inHand(book: RequestBook, id: string): InHand | undefined {
    const own = currentTask.getStore()?.request
    return own?.request.id === id && own.claimed.source === book.source ? own : book.inHand(id)
  }

  async #book(): Promise<RequestBook> {
    return this.#depot.book(await this.#storage.get())
  }
}

async function infoOf(depot: Depot, queue: Storage): Promise<crawlee.RequestQueueInfo> {
  const { total, handled, pending } = await depot.book(queue).counts()
  return {
    ...factsOf(queue),
    totalRequestCount: total,
    handledRequestCount: handled,
    pendingRequestCount: pending,
    hadMultipleClients: true,
  }
}

function told({ id, uniqueKey, wasThere, wasHandled }: Added): crawlee.ProcessedRequest {
  return {
    requestId: id,
    uniqueKey,
    wasAlreadyPresent: wasThere,
    wasAlreadyHandled: wasHandled,
  }
}

function checked<T extends NewRequest>(request: T): T {
  const { url, uniqueKey } = request
  if (typeof url !== 'string' || typeof uniqueKey !== 'string' || uniqueKey === '')
    throw new UsageError('A request needs a url and a uniqueKey, both texts.')
  return request
}

function notInHand(id: string): UsageError {
  return new UsageError(`Request ${id} is not in hand here: it was handled, handed back, or taken.`)
}
