import type * as crawlee from '@crawlee/types'
import { UsageError } from '../../../core/model/errors.ts'
import { whenAvailable } from '../../../core/store/open.ts'
import type { Storage } from '../../../core/store/store.ts'
import type { Depot } from '../session.ts'
import { push } from '../dataset-push.ts'
import { storageNamed, StorageOf } from '../storage-of.ts'
import { listed, type Listed } from './listing.ts'
import { factsOf, listStorages } from './storage-info.ts'

type Item = crawlee.Dictionary
type Page<T> = crawlee.PaginatedList<T>
type Options = crawlee.DatasetClientListOptions

/** How many are read at once by who walks over all of them. */
const PAGE = 1_000
const LIMIT_MAX = 999_999_999_999

export class DatasetCollection implements crawlee.DatasetCollectionClient {
  readonly #depot: Depot

  constructor(depot: Depot) {
    this.#depot = depot
  }

  list(): Promise<Page<crawlee.Dataset>> {
    return listStorages(this.#depot.store, 'dataset', (one) => infoOf(this.#depot, one))
  }

  async getOrCreate(name?: string): Promise<crawlee.DatasetInfo> {
    return infoOf(this.#depot, await storageNamed(this.#depot.store, 'dataset', name))
  }
}

/** Items in the order they came. */
export class Dataset implements crawlee.DatasetClient {
  readonly #depot: Depot
  readonly #storage: StorageOf

  constructor(depot: Depot, idOrName: string) {
    this.#depot = depot
    this.#storage = new StorageOf(depot.store, 'dataset', idOrName)
  }

  async get(): Promise<crawlee.DatasetInfo | undefined> {
    const found = await this.#storage.look()
    return found ? infoOf(this.#depot, found) : undefined
  }

  async update({ name }: crawlee.DatasetClientUpdateOptions = {}): Promise<crawlee.DatasetInfo> {
    return infoOf(this.#depot, await this.#storage.rename(name))
  }

  delete(): Promise<void> {
    return this.#storage.drop()
  }

  downloadItems(): Promise<Buffer> {
    return Promise.reject(new UsageError('Use listItems, or exportData of the crawler.'))
  }

  listItems(options: Options = {}): Listed<Page<Item>, Item> {
    return listed(this.#page(options), () => this.#walk(options))
  }

  listEntries(options: Options = {}): Listed<Page<[number, Item]>, [number, Item]> {
    const offset = options.offset ?? 0
    const first = this.#page(options).then((page) => ({
      ...page,
      items: page.items.map((item, n): [number, Item] => [offset + n, item]),
    }))
    return listed(first, () => numbered(this.#walk(options), offset))
  }

  async pushItems(items: Item | Item[] | string | string[]): Promise<void> {
    await push(this.#depot, await this.#storage.get(), readItems(items))
  }

  async #page({ desc = false, limit = LIMIT_MAX, offset = 0 }: Options): Promise<Page<Item>> {
    const { id } = await this.#storage.get()
    const page = { offset, limit, desc }
    const { total, items } = await whenAvailable(() => this.#depot.store.entries(id, page))
    const read = items.map((data) => JSON.parse(data) as Item)
    return { total, count: read.length, offset, limit, desc, items: read }
  }

  async *#walk({ desc = false, limit = LIMIT_MAX, offset = 0 }: Options): AsyncGenerator<Item> {
    for (let left = limit, at = offset; left > 0;) {
      const { items } = await this.#page({ desc, offset: at, limit: Math.min(PAGE, left) })
      yield* items
      if (items.length === 0) return
      left -= items.length
      at += items.length
    }
  }
}

async function* numbered<T>(items: AsyncIterable<T>, from: number): AsyncGenerator<[number, T]> {
  let n = from
  for await (const item of items) yield [n++, item]
}

async function infoOf({ store }: Depot, storage: Storage): Promise<crawlee.DatasetInfo> {
  const none = { offset: 0, limit: 0, desc: false }
  const { total } = await whenAvailable(() => store.entries(storage.id, none))
  return { ...factsOf(storage), itemCount: total }
}

function readItems(items: unknown): Item[] {
  const parsed: unknown = typeof items === 'string' ? JSON.parse(items) : items
  return (Array.isArray(parsed) ? parsed : [parsed]).map(readItem)
}

function readItem(item: unknown): Item {
  const parsed: unknown = typeof item === 'string' ? JSON.parse(item) : item
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed
  const what = Array.isArray(parsed) ? 'an array' : String(parsed)
  throw new UsageError(`Each item of a dataset is an object, not ${what}.`)
}
