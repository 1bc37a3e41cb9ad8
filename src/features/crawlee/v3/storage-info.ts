import type * as crawlee from '@crawlee/types'
import type { CrawleeStore, Storage, StorageKind } from '../store/store.ts'
import { allStorages } from '../storage-handle.ts'

/** Every one of a kind, in the shape of Crawlee's lists. */
export async function listStorages<Info>(
  store: CrawleeStore,
  kind: StorageKind,
  toInfo: (storage: Storage) => Promise<Info>,
): Promise<crawlee.PaginatedList<Info>> {
  const items = await Promise.all((await allStorages(store, kind)).map(toInfo))
  const count = items.length
  return { total: count, count, offset: 0, limit: count, desc: false, items }
}

/** What all kinds tell of themselves. */
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
