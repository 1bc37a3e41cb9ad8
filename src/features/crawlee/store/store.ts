import type { InTransaction } from '../../../core/model/checkpoint.ts'
import { messageOf, NotFoundError, UsageError } from '../../../core/model/errors.ts'
import type { Id, RunId } from '../../../core/model/id.ts'
import type { Millis } from '../../../core/model/time.ts'
import { withRetry } from '../../../core/store/open.ts'
import type { Store, StoreExtension } from '../../../core/store/store.ts'

/** Crawlee's named storages: queues, datasets and records by key. The requests of a queue are targets of a run. */
export interface CrawleeStore {
  /** Returns a storage by its id or its name. Marks it as accessed, to the second. */
  storage(kind: StorageKind, idOrName: string): Promise<Storage | null>
  /** Makes the storage if there is none of this name. Throws `UsageError` for a name that cannot be stored. */
  makeStorage(kind: StorageKind, name: string): Promise<Storage>
  /** Lists storages by the time they were made. */
  storages(
    kind: StorageKind,
    page: { offset: number; limit: number; desc: boolean },
  ): Promise<{ total: number; items: Storage[] }>
  /** Returns false if there is none of this id. Throws `UsageError` if another of its kind has the name. */
  renameStorage(id: Id, name: string): Promise<boolean>
  /** Deletes a storage with its contents. Returns false if there was none. */
  dropStorage(id: Id): Promise<boolean>

  // — Datasets: entries in the order of their arrival —

  /**
   * Stores all entries or none. An entry replaces the one with its key, in its place. Throws `UsageError` for text that is
   * not JSON, `NotFoundError` if the dataset is gone. Entries without a key are stored twice when the call is repeated:
   * where a response can get lost, give them keys, or store them with a page.
   * `from`: the request whose handler pushed them.
   */
  append(dataset: Id, entries: readonly DatasetEntry[], from?: EntryOrigin | null): Promise<void>
  /**
   * Returns a function that appends inside the transaction of a checkpoint of the same store. The entries count as items
   * of the run and the target's group: as new, or as updated where the key exists.
   */
  appending(run: RunId, entries: readonly Entry[], group?: string | null): InTransaction
  entries(
    dataset: Id,
    page: { offset: number; limit: number; desc: boolean },
  ): Promise<{ total: number; items: string[] }>

  /** Returns keys of targets of a run in the order in which they are claimed; last, those that are claimed now. */
  claimOrder(run: RunId, limit: number): Promise<string[]>

  // — Records —

  record(storage: Id, key: string): Promise<RecordContent | null>
  /**
   * Sets the record of this key; null deletes it. Throws `UsageError` for a record that cannot be stored, `NotFoundError` if
   * the storage of a new one is gone.
   */
  setRecord(storage: Id, key: string, content: RecordContent | null): Promise<void>
  /** Lists keys in the order of their bytes, after the given one. */
  recordKeys(
    storage: Id,
    page: { prefix?: string | undefined; after?: string | undefined; limit: number },
  ): Promise<{ key: string; size: number }[]>
}

/** Whether the storage has a record of this key, without reading its value. */
export async function hasRecord(store: CrawleeStore, storage: Id, key: string): Promise<boolean> {
  // Keys come in the order of their bytes: of those with this prefix, the key itself is the first.
  const [first] = await store.recordKeys(storage, { prefix: key, limit: 1 })
  return first?.key === key
}

export const CRAWLEE_STORE: StoreExtension<CrawleeStore> = {
  sqlite: async () => (await import('./sqlite.ts')).crawleeMethods,
  postgres: async () => (await import('./postgres.ts')).crawleeMethods,
}

/** The store with the statements of Crawlee's storages beside its own. */
export type StorageDatabase = Store & CrawleeStore

export async function withStorages(store: Store): Promise<StorageDatabase> {
  return { ...store, ...(await store.extend(CRAWLEE_STORE)) }
}

/** What is measured or ends a claim, which its caller repeats, and what does not wait for the database. */
const NOT_REPEATED = ['claim', 'checkpoint', 'fail', 'appending', 'close']

/** Returns the store with every other call repeated until the database answers. */
export function withRetries(store: StorageDatabase): StorageDatabase {
  const repeated = Object.entries(store).map(([name, value]: [string, unknown]) => {
    if (typeof value !== 'function' || NOT_REPEATED.includes(name)) return [name, value]
    return [name, (...args: unknown[]) => withRetry(() => value(...args) as Promise<unknown>)]
  })
  return Object.fromEntries(repeated) as StorageDatabase
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
  /** Null: the entry has no key and replaces no other. */
  readonly key: string | null
  /** JSON. */
  readonly data: string
}

/** The request whose handler pushed an entry. */
export type EntryOrigin = {
  readonly run: RunId
  readonly group: string | null
}

export type RecordContent = {
  readonly value: Uint8Array
  readonly contentType: string
}

// — Rows of both engines, and checks of values that one engine would refuse or return as something else —

export type StorageRow = {
  id: Id
  kind: StorageKind
  name: string
  created_at: Millis
  modified_at: Millis
  accessed_at: Millis
}

export function toStorage(row: StorageRow): Storage {
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
    accessedAt: row.accessed_at,
  }
}

/** A storage is marked as accessed at most this often, so that frequent reads do not wait for the write lock. */
export const ACCESS_GRANULARITY_MS = 1_000

const LABEL_BYTES_MAX = 1_000

/** Whether a name or key can be stored. Reads skip those that cannot. */
export function isStorableLabel(label: string): boolean {
  return (
    label !== '' &&
    !label.includes('\0') &&
    label.isWellFormed() &&
    Buffer.byteLength(label) <= LABEL_BYTES_MAX
  )
}

export function checkLabel(what: string, label: string): void {
  if (isStorableLabel(label)) return
  throw new UsageError(
    `${what} ${JSON.stringify(label.slice(0, 60))} cannot be stored. Give it 1 to ${LABEL_BYTES_MAX} bytes of text, ` +
      'without NUL and half characters.',
  )
}

export type Entry = DatasetEntry & { readonly dataset: Id }

/** Checks entries. Of entries with the same key it returns the last, in the place of the first. */
export function readEntries(entries: readonly Entry[]): Entry[] {
  const kept: Entry[] = []
  const places = new Map<string, number>()
  for (const entry of entries) {
    checkEntry(entry)
    const name = entry.key === null ? null : `${entry.dataset} ${entry.key}`
    const place = name === null ? undefined : places.get(name)
    if (place !== undefined) {
      kept[place] = entry
      continue
    }
    if (name !== null) places.set(name, kept.length)
    kept.push(entry)
  }
  return kept
}

function checkEntry({ key, data }: Entry): void {
  if (key !== null) checkLabel('The key', key)
  try {
    JSON.parse(data)
  } catch (error) {
    throw new UsageError(`An entry of a dataset is no JSON: ${messageOf(error)}.`, { cause: error })
  }
  if (!data.isWellFormed()) {
    throw new UsageError(
      'An entry of a dataset has half a character in it. JSON.stringify() writes it so that it can be stored.',
    )
  }
}

export function storageNotFound(id: Id): NotFoundError {
  return new NotFoundError(`storage ${id}`, 'It was dropped: open it again by its name.')
}

/** A range of keys in the order of their bytes. */
export type KeyRange = {
  readonly from: string
  /** Null: no end. */
  readonly below: string | null
}

/** Returns null if no key can match. */
export function keyRange({
  prefix = '',
  after = '',
}: {
  readonly prefix?: string | undefined
  readonly after?: string | undefined
}): KeyRange | null {
  if (prefix !== '' && !isStorableLabel(prefix)) return null
  // No key contains NUL, so this is the first that can follow.
  const next = after === '' ? '' : `${after.split('\0', 1)[0]!.toWellFormed()}\u0001`
  const from = Buffer.compare(Buffer.from(prefix), Buffer.from(next)) < 0 ? next : prefix
  return { from, below: endOf(prefix) }
}

const LAST_CODE_POINT = 0x10ffff
/** Between these two are surrogates. */
const BEFORE_SURROGATES = 0xd7ff
const AFTER_SURROGATES = 0xe000

/** The first text after all that begin with this prefix. */
function endOf(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0)!)
  while (points.at(-1) === LAST_CODE_POINT) points.pop()
  const last = points.pop()
  if (last === undefined) return null
  return String.fromCodePoint(...points, last === BEFORE_SURROGATES ? AFTER_SURROGATES : last + 1)
}
