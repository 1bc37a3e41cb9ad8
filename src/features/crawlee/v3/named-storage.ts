import type * as crawlee from '@crawlee/types'
import { NotFoundError } from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import type { CrawleeSession } from '../session.ts'
import type { Storage, StorageKind } from '../store/store.ts'

/** One kind of storage, as Crawlee sees it. */
export type StorageType<Info> = {
  readonly kind: StorageKind
  readonly label: string
  /** Throws on a name that cannot be used. */
  readonly checkName?: (name: string) => unknown
  readonly toInfo: (session: CrawleeSession, storage: Storage) => Info | Promise<Info>
}

const PAGE_SIZE = 1_000

/** All storages of a kind. */
export class StorageCollection<Info> {
  readonly #session: CrawleeSession
  readonly #type: StorageType<Info>

  constructor(session: CrawleeSession, type: StorageType<Info>) {
    this.#session = session
    this.#type = type
  }

  async list(): Promise<crawlee.PaginatedList<Info>> {
    const { kind, toInfo } = this.#type
    const all: Storage[] = []
    for (let isMore = true; isMore;) {
      const page = { offset: all.length, limit: PAGE_SIZE, desc: false }
      const { items } = await this.#session.store.storages(kind, page)
      all.push(...items)
      isMore = items.length === PAGE_SIZE
    }
    const items = await Promise.all(all.map((one) => toInfo(this.#session, one)))
    const count = items.length
    return { total: count, count, offset: 0, limit: count, desc: false, items }
  }

  /** Returns the storage with this id or name, or a new one; without a name it is named by its id. */
  async getOrCreate(name: string = newId()): Promise<Info> {
    const { kind, toInfo, checkName } = this.#type
    checkName?.(name)
    const { store } = this.#session
    const found = (await store.storage(kind, name)) ?? (await store.makeStorage(kind, name))
    return toInfo(this.#session, found)
  }
}

/** One storage by its id or name. */
export class NamedStorage<Info> {
  protected readonly session: CrawleeSession
  readonly #type: StorageType<Info>
  readonly #idOrName: string
  #found: Storage | null = null

  constructor(session: CrawleeSession, type: StorageType<Info>, idOrName: string) {
    this.session = session
    this.#type = type
    this.#idOrName = idOrName
  }

  async get(): Promise<Info | undefined> {
    const found = await this.load()
    return found ? this.#type.toInfo(this.session, found) : undefined
  }

  async update({ name }: { name?: string | undefined } = {}): Promise<Info> {
    const { id } = await this.storage()
    if (name !== undefined) await this.session.store.renameStorage(id, name)
    const renamed = (await this.load()) ?? (await this.storage())
    return this.#type.toInfo(this.session, renamed)
  }

  async delete(): Promise<void> {
    const found = await this.load()
    this.#found = null
    if (found) await this.session.store.dropStorage(found.id)
  }

  /** Reads the storage; null if it is gone. */
  protected async load(): Promise<Storage | null> {
    const { id } = this.#found ?? { id: this.#idOrName }
    this.#found = await this.session.store.storage(this.#type.kind, id)
    return this.#found
  }

  /** Returns the storage as it was first read. Throws a `NotFoundError` if there is none. */
  protected async storage(): Promise<Storage> {
    const found = this.#found ?? (await this.load())
    if (found) return found
    const what = `${this.#type.label} ${this.#idOrName}`
    throw new NotFoundError(what, 'Open it by its name, and it is made.')
  }
}

/** Returns the fields that every kind has. */
export function commonInfo({ id, name, createdAt, modifiedAt, accessedAt }: Storage) {
  return {
    id,
    name,
    createdAt: new Date(createdAt),
    modifiedAt: new Date(modifiedAt),
    accessedAt: new Date(accessedAt),
  }
}

/** A list of Crawlee: awaited it is its first page, iterated all of it. */
export type AsyncList<Page, Item> = Promise<Page> & AsyncIterable<Item>

/** Loads the first page only when it is awaited: iterating does not need it. */
export function asyncList<Page, Item>(
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
