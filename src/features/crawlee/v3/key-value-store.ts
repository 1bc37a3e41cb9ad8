import { Readable } from 'node:stream'
import type * as crawlee from '@crawlee/types'
import { UsageError } from '../../../core/model/errors.ts'
import { whenAvailable } from '../../../core/store/open.ts'
import type { Depot } from '../session.ts'
import { storageNamed, StorageOf } from '../storage-of.ts'
import { listed, listedLater, type Listed } from './listing.ts'
import { fromBytes, toBytes } from './record-body.ts'
import { factsOf, listStorages } from './storage-info.ts'

type Options = crawlee.KeyValueStoreClientListOptions
type KeyPage = crawlee.KeyValueStoreClientListData
type KeyAndSize = crawlee.KeyValueStoreItemData

const PAGE = 1_000

export class KeyValueStoreCollection implements crawlee.KeyValueStoreCollectionClient {
  readonly #depot: Depot

  constructor(depot: Depot) {
    this.#depot = depot
  }

  list(): Promise<crawlee.PaginatedList<crawlee.KeyValueStoreInfo>> {
    return listStorages(this.#depot.store, 'records', (one) => Promise.resolve(factsOf(one)))
  }

  async getOrCreate(name?: string): Promise<crawlee.KeyValueStoreInfo> {
    return factsOf(await storageNamed(this.#depot.store, 'records', name))
  }
}

/** Records by key, saved at once: to set one twice is to set it once. */
export class KeyValueStore implements crawlee.KeyValueStoreClient {
  readonly #depot: Depot
  readonly #storage: StorageOf

  constructor(depot: Depot, idOrName: string) {
    this.#depot = depot
    this.#storage = new StorageOf(depot.store, 'records', idOrName)
  }

  async get(): Promise<crawlee.KeyValueStoreInfo | undefined> {
    const found = await this.#storage.look()
    return found ? factsOf(found) : undefined
  }

  async update({
    name,
  }: crawlee.KeyValueStoreClientUpdateOptions = {}): Promise<crawlee.KeyValueStoreInfo> {
    return factsOf(await this.#storage.rename(name))
  }

  delete(): Promise<void> {
    return this.#storage.drop()
  }

  listKeys(options: Options = {}): Listed<KeyPage, KeyAndSize> {
    return listed(this.#page(options), () => this.#walk(options))
  }

  keys(options: Options = {}): Listed<KeyPage, string> {
    return listed(this.#page(options), () => map(this.#walk(options), async ({ key }) => [key]))
  }

  values(options: Options = {}): Listed<unknown[], unknown> {
    return listedLater(
      async () => (await this.#firstEntries(options)).map(([, value]) => value),
      () => map(this.#entries(options), async ([, value]) => [value]),
    )
  }

  entries(options: Options = {}): Listed<[string, unknown][], [string, unknown]> {
    return listedLater(
      () => this.#firstEntries(options),
      () => this.#entries(options),
    )
  }

  async recordExists(key: string): Promise<boolean> {
    const { id } = await this.#storage.get()
    return whenAvailable(() => this.#depot.store.hasRecord(id, key))
  }

  async getRecord(
    key: string,
    options: crawlee.KeyValueStoreClientGetRecordOptions = {},
  ): Promise<crawlee.KeyValueStoreRecord | undefined> {
    const { id } = await this.#storage.get()
    const record = await whenAvailable(() => this.#depot.store.record(id, key))
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
    await whenAvailable(() => this.#depot.store.setRecord(id, { key, ...body }))
  }

  async deleteRecord(key: string): Promise<void> {
    const { id } = await this.#storage.get()
    await whenAvailable(() => this.#depot.store.deleteRecord(id, key))
  }

  async #page({ limit = PAGE, exclusiveStartKey, prefix }: Options): Promise<KeyPage> {
    const { id } = await this.#storage.get()
    const asked = { prefix, after: exclusiveStartKey, limit: limit + 1 }
    const found = await whenAvailable(() => this.#depot.store.recordKeys(id, asked))
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

  async *#walk({
    limit = Infinity,
    exclusiveStartKey,
    ...rest
  }: Options): AsyncGenerator<KeyAndSize> {
    let [left, after] = [limit, exclusiveStartKey]
    while (left > 0) {
      const from = after === undefined ? {} : { exclusiveStartKey: after }
      const page = await this.#page({ ...rest, ...from, limit: Math.min(PAGE, left) })
      yield* page.items
      if (page.nextExclusiveStartKey === undefined) return
      left -= page.items.length
      after = page.nextExclusiveStartKey
    }
  }

  async *#entries(options: Options): AsyncGenerator<[string, unknown]> {
    yield* map(this.#walk(options), ({ key }) => this.#entry(key))
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

async function* map<From, To>(
  all: AsyncIterable<From>,
  to: (one: From) => Promise<To[]>,
): AsyncGenerator<To> {
  for await (const one of all) yield* await to(one)
}
