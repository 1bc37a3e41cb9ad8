import type * as crawlee from '@crawlee/types'
import { UsageError } from '../../../core/model/errors.ts'
import type { CrawleeSession } from '../session.ts'
import { push } from '../claimed-request.ts'
import {
  asyncList,
  commonInfo,
  NamedStorage,
  type AsyncList,
  type StorageType,
} from './named-storage.ts'

type Item = crawlee.Dictionary
type Page<T> = crawlee.PaginatedList<T>
type Options = crawlee.DatasetClientListOptions

/** Items per read when iterating over all of them. */
const PAGE_SIZE = 1_000
const LIMIT_MAX = 999_999_999_999

export const DATASETS: StorageType<crawlee.DatasetInfo> = {
  kind: 'dataset',
  label: 'dataset',
  async toInfo({ store }, storage) {
    const { total } = await store.entries(storage.id, { offset: 0, limit: 0, desc: false })
    return { ...commonInfo(storage), itemCount: total }
  },
}

/** Items in the order in which they were pushed. */
export class Dataset extends NamedStorage<crawlee.DatasetInfo> implements crawlee.DatasetClient {
  constructor(session: CrawleeSession, idOrName: string) {
    super(session, DATASETS, idOrName)
  }

  downloadItems(): Promise<Buffer> {
    return Promise.reject(new UsageError('Use listItems, or exportData of the crawler.'))
  }

  listItems(options: Options = {}): AsyncList<Page<Item>, Item> {
    return asyncList(
      () => this.#page(options),
      () => this.#iterate(options),
    )
  }

  listEntries(options: Options = {}): AsyncList<Page<[number, Item]>, [number, Item]> {
    const offset = options.offset ?? 0
    const first = async (): Promise<Page<[number, Item]>> => {
      const page = await this.#page(options)
      return { ...page, items: page.items.map((item, n) => [offset + n, item]) }
    }
    return asyncList(first, () => numbered(this.#iterate(options), offset))
  }

  async pushItems(items: Item | Item[] | string | string[]): Promise<void> {
    await push(this.session, await this.storage(), parseItems(items))
  }

  async #page({ desc = false, limit = LIMIT_MAX, offset = 0 }: Options): Promise<Page<Item>> {
    const { id } = await this.storage()
    const page = { offset, limit, desc }
    const { total, items } = await this.session.store.entries(id, page)
    const read = items.map((data) => JSON.parse(data) as Item)
    return { total, count: read.length, offset, limit, desc, items: read }
  }

  async *#iterate({ desc = false, limit = LIMIT_MAX, offset = 0 }: Options): AsyncGenerator<Item> {
    for (let left = limit, at = offset; left > 0;) {
      const { items } = await this.#page({ desc, offset: at, limit: Math.min(PAGE_SIZE, left) })
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

function parseItems(items: unknown): Item[] {
  const parsed: unknown = typeof items === 'string' ? JSON.parse(items) : items
  return (Array.isArray(parsed) ? parsed : [parsed]).map(parseItem)
}

function parseItem(item: unknown): Item {
  const parsed: unknown = typeof item === 'string' ? JSON.parse(item) : item
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed
  const what = Array.isArray(parsed) ? 'an array' : String(parsed)
  throw new UsageError(`Each item of a dataset is an object, not ${what}.`)
}
