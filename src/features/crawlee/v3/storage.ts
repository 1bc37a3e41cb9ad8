import type * as crawlee from '@crawlee/types'
import { UsageError } from '../../../core/model/errors.ts'
import { fields } from '../../../core/model/fields.ts'
import { Depot, type DepotOptions, type StoppableCrawler } from '../session.ts'
import { purgeDefaults } from '../purge.ts'
import { Dataset, DatasetCollection } from './dataset.ts'
import { hook, unhook, whatIsMissing, type CrawleeModules } from './hooks.ts'
import { KeyValueStore, KeyValueStoreCollection } from './key-value-store.ts'
import { RequestQueue, RequestQueueCollection } from './request-queue.ts'

export type CrawleeStorageOptions = DepotOptions & {
  /** Where they cannot be found by themselves, as in a bundle: `{ core: await import('@crawlee/core'), basic: … }`. */
  crawlee?: CrawleeModules
}

const OPTIONS: Readonly<Record<keyof CrawleeStorageOptions, string>> = {
  db: 'string',
  connections: 'number',
  policy: 'object',
  itemKey: 'function',
  signals: 'boolean',
  log: 'function',
  crawlee: 'object',
}

/** Storages for Crawlee 3 in SQLite or PostgreSQL: give it to `new Configuration({ storageClient })`. */
export async function crawleeStorage(options: CrawleeStorageOptions = {}): Promise<CrawleeStorage> {
  checkOptions(options)
  const { crawlee: modules, ...depot } = options
  return new CrawleeStorage(await Depot.open(depot), modules)
}

export class CrawleeStorage implements crawlee.StorageClient {
  /** Nobody limits the rate of a database of one's own. */
  readonly stats = { rateLimitErrors: [] as number[] }
  readonly #depot: Depot

  constructor(depot: Depot, modules: CrawleeModules | undefined) {
    this.#depot = depot
    const trouble = hook(this, modules)
    if (trouble === null) return
    depot.log(
      `${trouble}: items are saved when they are pushed, not together with their request. ` +
        'Give it as `crawlee: { core, basic }`.',
    )
  }

  datasets(): DatasetCollection {
    return new DatasetCollection(this.#depot)
  }

  dataset(id: string): Dataset {
    return new Dataset(this.#depot, id)
  }

  keyValueStores(): KeyValueStoreCollection {
    return new KeyValueStoreCollection(this.#depot)
  }

  keyValueStore(id: string): KeyValueStore {
    return new KeyValueStore(this.#depot, id)
  }

  requestQueues(): RequestQueueCollection {
    return new RequestQueueCollection(this.#depot)
  }

  requestQueue(id: string): RequestQueue {
    return new RequestQueue(this.#depot, id)
  }

  /** What Crawlee calls at every start: a crawl that is unfinished goes on, else there is room for a new one. */
  purge(): Promise<void> {
    return purgeDefaults(this.#depot)
  }

  /** What Crawlee calls when a crawler has ended: hands back what it had fetched ahead. It can be used on. */
  teardown(): Promise<void> {
    return this.#depot.rest()
  }

  setStatusMessage(): Promise<void> {
    return Promise.resolve()
  }

  /** Hands everything back and lets go of the database. */
  async close(): Promise<void> {
    unhook(this)
    await this.#depot.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Used by the hooks. */
  isStorage(client: unknown): boolean {
    return client === this
  }

  /** Used by the hooks. */
  isQueue(client: unknown): boolean {
    return client instanceof RequestQueue && client.isOf(this.#depot)
  }

  /** Used by the hooks. */
  begins(crawler: StoppableCrawler): void {
    this.#depot.begins(crawler)
  }

  /** Used by the hooks. */
  ends(crawler: StoppableCrawler, limit: string | null): void {
    this.#depot.ends(crawler, limit)
  }
}

/** A name that nobody knows would be left out without a word: without `db` it is another database. */
function checkOptions(options: unknown): void {
  const mistakes: string[] = []
  const given = fields('crawleeStorage()', options, Object.keys(OPTIONS), mistakes)
  for (const [name, type] of Object.entries(OPTIONS))
    if (given[name] !== undefined && typeof given[name] !== type)
      mistakes.push(`${name} must be a ${type}`)
  if (given['db'] === '') mistakes.push('db must be an address')
  const missing = given['crawlee'] === undefined ? null : whatIsMissing(given['crawlee'])
  if (missing !== null)
    mistakes.push(
      `crawlee has no ${missing}: give { core: await import('@crawlee/core'), basic: await import('@crawlee/basic') }`,
    )
  if (mistakes.length > 0)
    throw new UsageError(`These options cannot be used: ${mistakes.join('; ')}.`)
}
