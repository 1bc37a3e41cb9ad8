import type { InTransaction } from '../model/checkpoint.ts'
import type { Id, RunId } from '../model/id.ts'
import type { Millis } from '../model/time.ts'

/**
 * Named storages for crawlers that bring their own idea of them, as Crawlee does: queues, datasets, and records by key.
 * The requests of a queue are targets of a run; here is only its name.
 */
export interface CrawleeStore {
  /** By its id, or by its name. Marks it as accessed, to the second. */
  storage(kind: StorageKind, idOrName: string): Promise<Storage | null>
  /** There is one of this name afterwards, however many ask at once. Throws `UsageError` for a name that cannot be kept. */
  makeStorage(kind: StorageKind, name: string): Promise<Storage>
  /** By the time they were made. */
  storages(
    kind: StorageKind,
    page: { offset: number; limit: number; desc: boolean },
  ): Promise<{ total: number; items: Storage[] }>
  /** False when there is none of this id. Throws `UsageError` when another of its kind has the name. */
  renameStorage(id: Id, name: string): Promise<boolean>
  /** Gone, with all that is in it. False when it was not there. */
  dropStorage(id: Id): Promise<boolean>

  // — Datasets: in the order they came —

  /**
   * All of them, or none. One whose key is there already replaces that one, in its place. Throws `UsageError` for what is no
   * JSON, `NotFoundError` for a dataset that is gone. Those without a key are in twice when they are sent twice: where an answer
   * can get lost, give them keys, or send them with a page.
   */
  append(dataset: Id, entries: readonly DatasetEntry[]): Promise<void>
  /**
   * The same inside a checkpoint's transaction, and of its store. They count as items of the run and the target's group: as
   * new, or where a key was there already, as updated.
   */
  appending(
    run: RunId,
    entries: readonly (DatasetEntry & { readonly dataset: Id })[],
    group?: string | null,
  ): InTransaction
  entries(
    dataset: Id,
    page: { offset: number; limit: number; desc: boolean },
  ): Promise<{ total: number; items: string[] }>

  // — Records —

  record(storage: Id, key: string): Promise<StoredRecord | null>
  hasRecord(storage: Id, key: string): Promise<boolean>
  /** It is so afterwards. Throws `UsageError` for a key that cannot be kept, `NotFoundError` when the storage is gone. */
  setRecord(storage: Id, record: StoredRecord): Promise<void>
  deleteRecord(storage: Id, key: string): Promise<void>
  /** By key, in the order of their bytes, from after the given one. */
  recordKeys(
    storage: Id,
    page: { prefix?: string | undefined; after?: string | undefined; limit: number },
  ): Promise<{ key: string; size: number }[]>
}

export type StorageKind = 'queue' | 'dataset' | 'records'

export type Storage = {
  readonly id: Id
  readonly kind: StorageKind
  readonly name: string
  readonly createdAt: Millis
  readonly modifiedAt: Millis
  readonly accessedAt: Millis
}

export type DatasetEntry = {
  /** Null: it has none, and each is its own. */
  readonly key: string | null
  /** JSON. */
  readonly data: string
}

export type StoredRecord = {
  readonly key: string
  readonly value: Uint8Array
  readonly contentType: string
}
