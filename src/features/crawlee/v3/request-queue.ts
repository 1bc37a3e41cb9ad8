import { type ClaimedRequest, currentTask } from '../claimed-request.ts'
import type * as crawlee from '@crawlee/types'
import { UsageError } from '../../../core/model/errors.ts'
import type { CrawleeSession } from '../session.ts'
import { queueSource } from '../queue-run.ts'
import { isHandled, requestId, type NewRequest } from '../request.ts'
import type { RequestQueueStore, RequestResult } from '../request-queue-store.ts'
import { commonInfo, NamedStorage, type StorageType } from './named-storage.ts'

type Head = crawlee.RequestQueueHeadItem

export const REQUEST_QUEUES: StorageType<crawlee.RequestQueueInfo> = {
  kind: 'queue',
  label: 'request queue',
  checkName: queueSource,
  async toInfo(session, queue) {
    const { total, handled, pending } = await session.queueStore(queue).counts()
    return {
      ...commonInfo(queue),
      totalRequestCount: total,
      handledRequestCount: handled,
      pendingRequestCount: pending,
      hadMultipleClients: true,
    }
  },
}

/** A request queue. Its locks are claims: they last as long as the heartbeat of this process, and have no times. */
export class RequestQueue
  extends NamedStorage<crawlee.RequestQueueInfo>
  implements crawlee.RequestQueueClient
{
  /** Ids of requests that were put back, until Crawlee asks to unlock them as well. */
  readonly #requeued = new Set<string>()

  constructor(session: CrawleeSession, idOrName: string) {
    super(session, REQUEST_QUEUES, idOrName)
  }

  belongsTo(session: CrawleeSession): boolean {
    return this.session === session
  }

  override async update({ name }: { name?: string } = {}): Promise<crawlee.RequestQueueInfo> {
    if (name !== undefined && (await (await this.#queueStore()).run()))
      throw new UsageError(
        'A queue that has had requests keeps its name: its runs are known by it.',
      )
    return super.update({ name })
  }

  /** Cancels its run if it is live; the run itself is kept. */
  override async delete(): Promise<void> {
    const found = await this.load()
    if (found) await this.session.queueStore(found).drop()
    await super.delete()
  }

  async listHead({ limit = 100 }: crawlee.ListOptions = {}): Promise<crawlee.QueueHead> {
    const { modifiedAt } = await this.storage()
    const items = (await (await this.#queueStore()).pending(limit)) as unknown as Head[]
    return { limit, hadMultipleClients: true, queueModifiedAt: new Date(modifiedAt), items }
  }

  async listAndLockHead({
    limit = 25,
    lockSecs,
  }: crawlee.ListAndLockOptions): Promise<crawlee.ListAndLockHeadResult> {
    const { modifiedAt } = await this.storage()
    const { claimed, hasMore } = await (await this.#queueStore()).claim(limit)
    return {
      limit,
      lockSecs,
      hadMultipleClients: true,
      queueModifiedAt: new Date(modifiedAt),
      queueHasLockedRequests: hasMore,
      items: claimed.map(({ request }) => request as unknown as Head),
    }
  }

  /** Called when a request goes to its handler: items pushed from now on belong to it. */
  async prolongRequestLock(
    id: string,
    { lockSecs }: crawlee.ProlongRequestLockOptions,
  ): Promise<crawlee.ProlongRequestLockResult> {
    const claimed = (await this.#queueStore()).claimed(id)
    if (!claimed) throw notClaimedError(id)
    claimed.isStarted = true
    const task = currentTask.getStore()
    if (task) task.request = claimed
    return { lockExpiresAt: new Date(Date.now() + lockSecs * 1_000) }
  }

  /** Crawlee puts a request back and unlocks it afterwards, when another process may have claimed it. */
  async deleteRequestLock(
    id: string,
    { forefront = false }: crawlee.DeleteRequestLockOptions = {},
  ): Promise<void> {
    if (this.#requeued.delete(id)) throw notClaimedError(id)
    const queueStore = await this.#queueStore()
    const claimed = this.#claimed(queueStore, id)
    if (claimed?.state !== 'held') throw notClaimedError(id)
    await queueStore.worker.release([claimed], forefront)
    if (forefront) queueStore.worker.expectForefront(1)
  }

  async addRequest(
    request: crawlee.RequestSchema,
    { forefront = false }: crawlee.RequestOptions = {},
  ): Promise<crawlee.QueueOperationInfo> {
    const [added] = await (await this.#queueStore()).add([checkRequest(request)], forefront)
    const { uniqueKey: _, ...info } = added!
    return info
  }

  async batchAddRequests(
    requests: crawlee.RequestSchema[],
    { forefront = false }: crawlee.RequestOptions = {},
  ): Promise<crawlee.BatchAddRequestsResult> {
    const added = await (await this.#queueStore()).add(requests.map(checkRequest), forefront)
    // Crawlee repeats unprocessed requests for ever, so one that cannot be stored is an error.
    return { processedRequests: added, unprocessedRequests: [] }
  }

  async getRequest(id: string): Promise<crawlee.RequestOptions | undefined> {
    const queueStore = await this.#queueStore()
    return queueStore.claimed(id)?.request ?? (await queueStore.findById(id)) ?? undefined
  }

  /**
   * Ends an attempt: handled, failed, or queued again. Crawlee ends the crawl on an error from here, so a request whose
   * claim was lost is reported as handled: another process will handle it.
   */
  async updateRequest(
    request: crawlee.UpdateRequestSchema,
    { forefront = false }: crawlee.RequestOptions = {},
  ): Promise<crawlee.QueueOperationInfo> {
    const [queueStore, id] = [await this.#queueStore(), requestId(request.uniqueKey)]
    if (request.id !== id) throw new UsageError('The id of a request comes from its unique key.')
    const claimed = this.#claimed(queueStore, id)
    if (!claimed) return this.#updateUnclaimed(queueStore, request, forefront)
    const result = resultOf(request, forefront)
    if (result.kind === 'put back') this.#requeued.add(id)
    const isOurs = claimed.state === 'held' && (await queueStore.finish(claimed, request, result))
    if (claimed.state === 'taken') claimed.state = 'over'
    return { requestId: id, wasAlreadyPresent: true, wasAlreadyHandled: !isOurs }
  }

  deleteRequest(): Promise<never> {
    const message = 'Requests are kept. `unstuck park` takes one out.'
    return Promise.reject(new UsageError(message))
  }

  async #updateUnclaimed(
    queueStore: RequestQueueStore,
    request: crawlee.UpdateRequestSchema,
    forefront: boolean,
  ): Promise<crawlee.QueueOperationInfo> {
    const target = await queueStore.find(request.uniqueKey)
    if (!target) return this.addRequest(request, { forefront })
    if (!isHandled(target) && !queueStore.worker.wasLost(request.id))
      throw new UsageError(
        target.status === 'in_progress'
          ? `Request ${request.id} is being handled by another process: only that one can end it.`
          : `Request ${request.id} is not locked by this process: lock it with fetchNextRequest(), which returns the ` +
              "next one, or with a crawler. Crawlee's old queue without locks (experiments: { requestLocking: false }) " +
              'cannot be used with this storage.',
      )
    return { requestId: request.id, wasAlreadyPresent: true, wasAlreadyHandled: true }
  }

  /** Returns the claim of the running handler; the request may have been claimed again since. */
  #claimed(queueStore: RequestQueueStore, id: string): ClaimedRequest | undefined {
    const own = currentTask.getStore()?.request
    return own?.request.id === id && own.claim.source === queueStore.source
      ? own
      : queueStore.claimed(id)
  }

  async #queueStore(): Promise<RequestQueueStore> {
    return this.session.queueStore(await this.storage())
  }
}

function checkRequest<T extends NewRequest>(request: T): T {
  const { url, uniqueKey } = request
  if (typeof url !== 'string' || typeof uniqueKey !== 'string' || uniqueKey === '')
    throw new UsageError('A request needs a url and a uniqueKey, both texts.')
  return request
}

function notClaimedError(id: string): UsageError {
  return new UsageError(`Request ${id} is not claimed here: it was handled, released, or taken.`)
}

/** A request as Crawlee returns it after an attempt. */
type TriedRequest = {
  readonly handledAt?: string
  readonly errorMessages?: readonly string[]
  readonly userData?: Readonly<Record<string, unknown>>
}

/** Crawlee's state of a request whose error handler runs. */
const ERROR_HANDLER_STATE = 5

/** The result of an attempt. Crawlee marks failed requests as handled too; only its own state differs. */
export function resultOf(request: TriedRequest, forefront: boolean): RequestResult {
  const { handledAt, errorMessages = [], userData } = request
  const error = (errorMessages.at(-1) ?? 'put back by the crawler').split('\n', 1)[0]!
  if (!handledAt) return { kind: 'put back', error, forefront }
  const { state } = (userData?.['__crawlee'] ?? {}) as { state?: number }
  const isGivenUp = state === ERROR_HANDLER_STATE && errorMessages.length > 0
  return isGivenUp ? { kind: 'given up', error } : { kind: 'handled' }
}
