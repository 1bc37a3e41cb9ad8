import { NotFound } from '../../core/model/errors.ts'
import { newId } from '../../core/model/id.ts'
import { whenAvailable } from '../../core/store/open.ts'
import type { Storage, StorageKind, Store } from '../../core/store/store.ts'

const WORDS: Record<StorageKind, string> = {
  queue: 'request queue',
  dataset: 'dataset',
  records: 'key-value store',
}

/** One storage, by its id or its name, as Crawlee holds on to it. */
export class StorageOf {
  readonly #store: Store
  readonly #kind: StorageKind
  readonly #idOrName: string
  #found: Storage | null = null

  constructor(store: Store, kind: StorageKind, idOrName: string) {
    this.#store = store
    this.#kind = kind
    this.#idOrName = idOrName
  }

  /** As it is now; null when it is gone. */
  async look(): Promise<Storage | null> {
    const { id } = this.#found ?? { id: this.#idOrName }
    this.#found = await whenAvailable(() => this.#store.storage(this.#kind, id))
    return this.#found
  }

  /** The same for those who need it, without asking every time. */
  async get(): Promise<Storage> {
    const found = this.#found ?? (await this.look())
    if (found) return found
    const word = WORDS[this.#kind]
    throw new NotFound(`${word} ${this.#idOrName}`, 'Open it by its name, and it is made.')
  }

  async rename(name: string | undefined): Promise<Storage> {
    const { id } = await this.get()
    if (name !== undefined) await whenAvailable(() => this.#store.renameStorage(id, name))
    return (await this.look()) ?? this.get()
  }

  async drop(): Promise<void> {
    const found = await this.look()
    this.#found = null
    if (found) await whenAvailable(() => this.#store.dropStorage(found.id))
  }
}

/** By its id or name, or new under this name; without one, under its own. */
export async function storageNamed(
  store: Store,
  kind: StorageKind,
  name: string = newId(),
): Promise<Storage> {
  const found = await whenAvailable(() => store.storage(kind, name))
  return found ?? whenAvailable(() => store.makeStorage(kind, name))
}

/** Every one of a kind. */
export async function allStorages(store: Store, kind: StorageKind): Promise<Storage[]> {
  const all: Storage[] = []
  for (;;) {
    const page = { offset: all.length, limit: 1_000, desc: false }
    const { items } = await whenAvailable(() => store.storages(kind, page))
    all.push(...items)
    if (items.length < page.limit) return all
  }
}
