import type * as crawlee from '@crawlee/types'
import { UsageError } from '../../../core/model/errors.ts'
import { checkFields } from '../../../lib/validate/fields.ts'
import { CrawleeSession, type CrawleeSessionOptions } from '../session.ts'
import { purgeDefaults } from '../purge.ts'
import { Dataset, DATASETS } from './dataset.ts'
import {
  findMissing,
  installHooks,
  removeHooks,
  type CrawleeModules,
  type HookOwner,
} from './hooks.ts'
import { KeyValueStore, KEY_VALUE_STORES } from './key-value-store.ts'
import { StorageCollection } from './named-storage.ts'
import { RequestQueue, REQUEST_QUEUES } from './request-queue.ts'

/** Options of `crawleeStorage`. */
export type CrawleeStorageOptions = CrawleeSessionOptions & {
  /**
   * Crawlee's modules `@crawlee/core` and `@crawlee/basic`, for a bundle, where they cannot be found. @default those that
   * the program uses
   */
  crawlee?: CrawleeModules | undefined
}

/** Storages for Crawlee, from `crawleeStorage`. */
export interface CrawleeStorage extends crawlee.StorageClient, AsyncDisposable {
  /** Called by Crawlee at every start: continues an unfinished crawl, else makes room for a new one. */
  purge(): Promise<void>
  /** Called by Crawlee at the end of a crawler: releases the requests that it fetched ahead. The storage stays usable. */
  teardown(): Promise<void>
  /** Releases all requests and closes the database. */
  close(): Promise<void>
}

const OPTION_TYPES: Readonly<Record<keyof CrawleeStorageOptions, string>> = {
  db: 'string',
  connections: 'number',
  policy: 'object',
  itemKey: 'function',
  signals: 'boolean',
  log: 'function',
  crawlee: 'object',
}

/**
 * Opens storages for Crawlee 3 in SQLite or PostgreSQL.
 * @throws {UsageError} @throws {DatabaseError}
 * @example new CheerioCrawler({ requestHandler }, new Configuration({ storageClient: await crawleeStorage() }))
 */
export async function crawleeStorage(options: CrawleeStorageOptions = {}): Promise<CrawleeStorage> {
  checkOptions(options)
  const { crawlee: modules, ...sessionOptions } = options
  return new StorageClient(await CrawleeSession.open(sessionOptions), modules)
}

class StorageClient implements CrawleeStorage {
  /** There is no rate limit. */
  readonly stats = { rateLimitErrors: [] as number[] }
  readonly #session: CrawleeSession
  readonly #hooks: HookOwner

  constructor(session: CrawleeSession, modules: CrawleeModules | undefined) {
    this.#session = session
    this.#hooks = { client: this, session }
    const problem = installHooks(this.#hooks, modules)
    if (problem === null) return
    session.log(
      `${problem}: items are saved when they are pushed, not together with their request. ` +
        'Give it as `crawlee: { core, basic }`.',
    )
  }

  datasets(): StorageCollection<crawlee.DatasetInfo> {
    return new StorageCollection(this.#session, DATASETS)
  }

  dataset(id: string): Dataset {
    return new Dataset(this.#session, id)
  }

  keyValueStores(): StorageCollection<crawlee.KeyValueStoreInfo> {
    return new StorageCollection(this.#session, KEY_VALUE_STORES)
  }

  keyValueStore(id: string): KeyValueStore {
    return new KeyValueStore(this.#session, id)
  }

  requestQueues(): StorageCollection<crawlee.RequestQueueInfo> {
    return new StorageCollection(this.#session, REQUEST_QUEUES)
  }

  requestQueue(id: string): RequestQueue {
    return new RequestQueue(this.#session, id)
  }

  purge(): Promise<void> {
    return purgeDefaults(this.#session)
  }

  teardown(): Promise<void> {
    return this.#session.releaseIdle()
  }

  setStatusMessage(): Promise<void> {
    return Promise.resolve()
  }

  async close(): Promise<void> {
    removeHooks(this.#hooks)
    await this.#session.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** Rejects unknown options: a typo in `db` would silently select another database. */
function checkOptions(options: unknown): void {
  const mistakes: string[] = []
  const given = checkFields('crawleeStorage()', options, Object.keys(OPTION_TYPES), mistakes)
  for (const [name, type] of Object.entries(OPTION_TYPES))
    if (given[name] !== undefined && typeof given[name] !== type)
      mistakes.push(`${name} must be a ${type}`)
  if (given['db'] === '') mistakes.push('db must be an address')
  const missing = given['crawlee'] === undefined ? null : findMissing(given['crawlee'])
  if (missing !== null)
    mistakes.push(
      `crawlee has no ${missing}: give { core: await import('@crawlee/core'), basic: await import('@crawlee/basic') }`,
    )
  if (mistakes.length > 0)
    throw new UsageError(`These options cannot be used: ${mistakes.join('; ')}.`)
}
