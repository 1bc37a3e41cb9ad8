import type * as crawlee from '@crawlee/types'
import type { CrawleeStore, Storage, StorageKind } from '../store/store.ts'
import { allStorages } from '../storage-handle.ts'

/** Returns all storages of a kind, in the shape of Crawlee's lists. */
export async function listStorages<Info>(
  store: CrawleeStore,
  kind: StorageKind,
  toInfo: (storage: Storage) => Promise<Info>,
): Promise<crawlee.PaginatedList<Info>> {
  const items = await Promise.all((await allStorages(store, kind)).map(toInfo))
  const count = items.length
  return { total: count, count, offset: 0, limit: count, desc: false, items }
}

/** Returns the fields that every kind has. */
export function commonInfo({ id, name, createdAt, modifiedAt, accessedAt }: Storage): {
  id: string
  name: string
  createdAt: Date
  modifiedAt: Date
  accessedAt: Date
} {
  return {
    id,
    name,
    createdAt: new Date(createdAt),
    modifiedAt: new Date(modifiedAt),
    accessedAt: new Date(accessedAt),
  }
}

/** What Crawlee gets from lists: await it for the first page, or walk over all of it. */
export type AsyncList<Page, Item> = Promise<Page> & AsyncIterable<Item>

export function asyncList<Page, Item>(
  first: Promise<Page>,
  iterate: () => AsyncIterator<Item>,
): AsyncList<Page, Item> {
  // The iterator reports errors itself.
  first.catch(() => {})
  return Object.assign(first, { [Symbol.asyncIterator]: iterate })
}

/** Loads the first page only when it is awaited: iterating does not need it. */
export function lazyAsyncList<Page, Item>(
  load: () => Promise<Page>,
  iterate: () => AsyncIterator<Item>,
): AsyncList<Page, Item> {
  let page: Promise<Page> | null = null
  const first = (): Promise<Page> => (page ??= load())
  return {
    // oxlint-disable-next-line unicorn/no-thenable -- it is one on purpose
    then: (kept, broken) => first().then(kept, broken),
    catch: (broken) => first().catch(broken),
    finally: (ended) => first().finally(ended),
    [Symbol.toStringTag]: 'Promise',
    [Symbol.asyncIterator]: iterate,
  } as AsyncList<Page, Item>
}
