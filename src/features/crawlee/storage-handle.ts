import { NotFoundError } from '../../core/model/errors.ts'
import { newId } from '../../core/model/id.ts'
import { withRetry } from '../../core/store/open.ts'
import type { CrawleeStore, Storage, StorageKind } from './store/store.ts'

const KIND_LABELS: Record<StorageKind, string> = {
  queue: 'request queue',
  dataset: 'dataset',
  records: 'key-value store',
}

/** One storage, by its id or its name, as Crawlee holds on to it. */
export class StorageHandle {
  readonly #store: CrawleeStore
  readonly #kind: StorageKind
  readonly #idOrName: string
  #found: Storage | null = null

  constructor(store: CrawleeStore, kind: StorageKind, idOrName: string) {
    this.#store = store
    this.#kind = kind
    this.#idOrName = idOrName
  }

  /** As it is now; null when it is gone. */
  async load(): Promise<Storage | null> {
    const { id } = this.#found ?? { id: this.#idOrName }
    this.#found = await withRetry(() => this.#store.storage(this.#kind, id))
    return this.#found
  }

  /** The same for those who need it, without asking every time. */
  async get(): Promise<Storage> {
    const found = this.#found ?? (await this.load())
    if (found) return found
    const label = KIND_LABELS[this.#kind]
    throw new NotFoundError(`${label} ${this.#idOrName}`, 'Open it by its name, and it is made.')
  }

  async rename(name: string | undefined): Promise<Storage> {
    const { id } = await this.get()
    if (name !== undefined) await withRetry(() => this.#store.renameStorage(id, name))
    return (await this.load()) ?? this.get()
  }

  async drop(): Promise<void> {
    const found = await this.load()
    this.#found = null
    if (found) await withRetry(() => this.#store.dropStorage(found.id))
  }
}

/** By its id or name, or new under this name; without one, under its own. */
export async function openStorage(
  store: CrawleeStore,
  kind: StorageKind,
  name: string = newId(),
): Promise<Storage> {
  const found = await withRetry(() => store.storage(kind, name))
  return found ?? withRetry(() => store.makeStorage(kind, name))
}

/** Every one of a kind. */
export async function allStorages(store: CrawleeStore, kind: StorageKind): Promise<Storage[]> {
  const all: Storage[] = []
  for (;;) {
    const page = { offset: all.length, limit: 1_000, desc: false }
    const { items } = await withRetry(() => store.storages(kind, page))
    all.push(...items)
    if (items.length < page.limit) return all
  }
}
