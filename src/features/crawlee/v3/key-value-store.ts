import { Readable } from 'node:stream'
import type * as crawlee from '@crawlee/types'
import { UsageError } from '../../../core/model/errors.ts'
import { withRetry } from '../../../core/store/open.ts'
import type { CrawleeSession } from '../session.ts'
import { openStorage, StorageHandle } from '../storage-handle.ts'
import { fromBytes, toBytes } from './record-body.ts'
import {
  asyncList,
  commonInfo,
  lazyAsyncList,
  listStorages,
  type AsyncList,
} from './storage-info.ts'

type Options = crawlee.KeyValueStoreClientListOptions
type KeyPage = crawlee.KeyValueStoreClientListData
type KeyAndSize = crawlee.KeyValueStoreItemData

const PAGE_SIZE = 1_000

export class KeyValueStoreCollection implements crawlee.KeyValueStoreCollectionClient {
  readonly #session: CrawleeSession

  constructor(session: CrawleeSession) {
    this.#session = session
  }

  list(): Promise<crawlee.PaginatedList<crawlee.KeyValueStoreInfo>> {
    return listStorages(this.#session.store, 'records', (one) => Promise.resolve(commonInfo(one)))
  }

  async getOrCreate(name?: string): Promise<crawlee.KeyValueStoreInfo> {
    return commonInfo(await openStorage(this.#session.store, 'records', name))
  }
}

/** Records by key, saved at once: to set one twice is to set it once. */
export class KeyValueStore implements crawlee.KeyValueStoreClient {
  readonly #session: CrawleeSession
  readonly #storage: StorageHandle

  constructor(session: CrawleeSession, idOrName: string) {
    this.#session = session
    this.#storage = new StorageHandle(session.store, 'records', idOrName)
  }

  async get(): Promise<crawlee.KeyValueStoreInfo | undefined> {
    const found = await this.#storage.load()
    return found ? commonInfo(found) : undefined
  }

  async update({
    name,
  }: crawlee.KeyValueStoreClientUpdateOptions = {}): Promise<crawlee.KeyValueStoreInfo> {
    return commonInfo(await this.#storage.rename(name))
  }

  delete(): Promise<void> {
    return this.#storage.drop()
  }

  listKeys(options: Options = {}): AsyncList<KeyPage, KeyAndSize> {
    return asyncList(this.#page(options), () => this.#iterate(options))
  }

  keys(options: Options = {}): AsyncList<KeyPage, string> {
    return asyncList(this.#page(options), () =>
      flatMapAsync(this.#iterate(options), async ({ key }) => [key]),
    )
  }

  values(options: Options = {}): AsyncList<unknown[], unknown> {
    return lazyAsyncList(
      async () => (await this.#firstEntries(options)).map(([, value]) => value),
      () => flatMapAsync(this.#entries(options), async ([, value]) => [value]),
    )
  }

  entries(options: Options = {}): AsyncList<[string, unknown][], [string, unknown]> {
    return lazyAsyncList(
      () => this.#firstEntries(options),
      () => this.#entries(options),
    )
  }

  async recordExists(key: string): Promise<boolean> {
    const { id } = await this.#storage.get()
    return withRetry(() => this.#session.store.hasRecord(id, key))
  }

  async getRecord(
    key: string,
    options: crawlee.KeyValueStoreClientGetRecordOptions = {},
  ): Promise<crawlee.KeyValueStoreRecord | undefined> {
    const { id } = await this.#storage.get()
    const record = await withRetry(() => this.#session.store.record(id, key))
    if (!record) return undefined
    const { value: bytes, contentType } = record
    if (options.stream) return { key, value: Readable.from([Buffer.from(bytes)]), contentType }
    if (options.buffer) return { key, value: Buffer.from(bytes), contentType }
    return { key, value: fromBytes(bytes, contentType), contentType }
  }

  async setRecord(record: crawlee.KeyValueStoreRecord): Promise<void> {
    const { key } = record
    if (typeof key !== 'string' || key === '') throw new UsageError('A record needs a key.')
    const { id } = await this.#storage.get()
    const body = await toBytes(record)
    await withRetry(() => this.#session.store.setRecord(id, { key, ...body }))
  }

  async deleteRecord(key: string): Promise<void> {
    const { id } = await this.#storage.get()
    await withRetry(() => this.#session.store.deleteRecord(id, key))
  }

  async #page({ limit = PAGE_SIZE, exclusiveStartKey, prefix }: Options): Promise<KeyPage> {
    const { id } = await this.#storage.get()
    const asked = { prefix, after: exclusiveStartKey, limit: limit + 1 }
    const found = await withRetry(() => this.#session.store.recordKeys(id, asked))
    const items = found.slice(0, limit)
    const isTruncated = found.length > limit
    return {
      count: items.length,
      limit,
      isTruncated,
      items,
      ...(exclusiveStartKey !== undefined && { exclusiveStartKey }),
      ...(isTruncated && { nextExclusiveStartKey: items.at(-1)!.key }),
    }
  }

  async *#iterate({
    limit = Infinity,
    exclusiveStartKey,
    ...rest
  }: Options): AsyncGenerator<KeyAndSize> {
    let [left, after] = [limit, exclusiveStartKey]
    while (left > 0) {
      const from = after === undefined ? {} : { exclusiveStartKey: after }
      const page = await this.#page({ ...rest, ...from, limit: Math.min(PAGE_SIZE, left) })
      yield* page.items
      if (page.nextExclusiveStartKey === undefined) return
      left -= page.items.length
      after = page.nextExclusiveStartKey
    }
  }

  async *#entries(options: Options): AsyncGenerator<[string, unknown]> {
    yield* flatMapAsync(this.#iterate(options), ({ key }) => this.#entry(key))
  }

  async #firstEntries(options: Options): Promise<[string, unknown][]> {
    const entries: [string, unknown][] = []
    for (const { key } of (await this.#page(options)).items)
      entries.push(...(await this.#entry(key)))
    return entries
  }

  /** None, when it has gone since its key was read. */
  async #entry(key: string): Promise<[string, unknown][]> {
    const record = await this.getRecord(key)
    return record ? [[key, record.value]] : []
  }
}

async function* flatMapAsync<From, To>(
  all: AsyncIterable<From>,
  to: (one: From) => Promise<To[]>,
): AsyncGenerator<To> {
  for await (const one of all) yield* await to(one)
}
