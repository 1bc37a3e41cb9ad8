import { Readable } from 'node:stream'
import type * as crawlee from '@crawlee/types'
import { UsageError } from '../../../core/model/errors.ts'
import type { CrawleeSession } from '../session.ts'
import { hasRecord, type RecordContent } from '../store/store.ts'
import {
  asyncList,
  commonInfo,
  NamedStorage,
  type AsyncList,
  type StorageType,
} from './named-storage.ts'

type Options = crawlee.KeyValueStoreClientListOptions
type KeyPage = crawlee.KeyValueStoreClientListData
type KeyAndSize = crawlee.KeyValueStoreItemData

const PAGE_SIZE = 1_000

export const KEY_VALUE_STORES: StorageType<crawlee.KeyValueStoreInfo> = {
  kind: 'records',
  label: 'key-value store',
  toInfo: (_, storage) => commonInfo(storage),
}

/** Records by key, saved at once: to set one twice is to set it once. */
export class KeyValueStore
  extends NamedStorage<crawlee.KeyValueStoreInfo>
  implements crawlee.KeyValueStoreClient
{
  constructor(session: CrawleeSession, idOrName: string) {
    super(session, KEY_VALUE_STORES, idOrName)
  }

  listKeys(options: Options = {}): AsyncList<KeyPage, KeyAndSize> {
    return asyncList(
      () => this.#page(options),
      () => this.#iterate(options),
    )
  }

  keys(options: Options = {}): AsyncList<KeyPage, string> {
    return asyncList(
      () => this.#page(options),
      () => flatMapAsync(this.#iterate(options), async ({ key }) => [key]),
    )
  }

  values(options: Options = {}): AsyncList<unknown[], unknown> {
    return asyncList(
      async () => (await this.#firstEntries(options)).map(([, value]) => value),
      () => flatMapAsync(this.#entries(options), async ([, value]) => [value]),
    )
  }

  entries(options: Options = {}): AsyncList<[string, unknown][], [string, unknown]> {
    return asyncList(
      () => this.#firstEntries(options),
      () => this.#entries(options),
    )
  }

  async recordExists(key: string): Promise<boolean> {
    const { id } = await this.storage()
    return hasRecord(this.session.store, id, key)
  }

  async getRecord(
    key: string,
    options: crawlee.KeyValueStoreClientGetRecordOptions = {},
  ): Promise<crawlee.KeyValueStoreRecord | undefined> {
    const { id } = await this.storage()
    const record = await this.session.store.record(id, key)
    if (!record) return undefined
    const { value: bytes, contentType } = record
    if (options.stream) return { key, value: Readable.from([Buffer.from(bytes)]), contentType }
    if (options.buffer) return { key, value: Buffer.from(bytes), contentType }
    return { key, value: fromBytes(bytes, contentType), contentType }
  }

  async setRecord(record: crawlee.KeyValueStoreRecord): Promise<void> {
    const { key } = record
    if (typeof key !== 'string' || key === '') throw new UsageError('A record needs a key.')
    const { id } = await this.storage()
    await this.session.store.setRecord(id, key, await toBytes(record))
  }

  async deleteRecord(key: string): Promise<void> {
    const { id } = await this.storage()
    await this.session.store.setRecord(id, key, null)
  }

  async #page({ limit = PAGE_SIZE, exclusiveStartKey, prefix }: Options): Promise<KeyPage> {
    const { id } = await this.storage()
    const asked = { prefix, after: exclusiveStartKey, limit: limit + 1 }
    const found = await this.session.store.recordKeys(id, asked)
    const items = found.slice(0, limit)
    const isTruncated = found.length > limit
    return {
      count: items.length,
      limit,
      isTruncated,
      items,
      ...(exclusiveStartKey !== undefined && { exclusiveStartKey }),
      ...(isTruncated && { nextExclusiveStartKey: items.at(-1)!.key }),
    }
  }

  async *#iterate({
    limit = Infinity,
    exclusiveStartKey,
    ...rest
  }: Options): AsyncGenerator<KeyAndSize> {
    let [left, after] = [limit, exclusiveStartKey]
    while (left > 0) {
      const from = after === undefined ? {} : { exclusiveStartKey: after }
      const page = await this.#page({ ...rest, ...from, limit: Math.min(PAGE_SIZE, left) })
      yield* page.items
      if (page.nextExclusiveStartKey === undefined) return
      left -= page.items.length
      after = page.nextExclusiveStartKey
    }
  }

  async *#entries(options: Options): AsyncGenerator<[string, unknown]> {
    yield* flatMapAsync(this.#iterate(options), ({ key }) => this.#entry(key))
  }

  async #firstEntries(options: Options): Promise<[string, unknown][]> {
    const entries: [string, unknown][] = []
    for (const { key } of (await this.#page(options)).items)
      entries.push(...(await this.#entry(key)))
    return entries
  }

  /** None, when it has gone since its key was read. */
  async #entry(key: string): Promise<[string, unknown][]> {
    const record = await this.getRecord(key)
    return record ? [[key, record.value]] : []
  }
}

async function* flatMapAsync<From, To>(
  all: AsyncIterable<From>,
  to: (one: From) => Promise<To[]>,
): AsyncGenerator<To> {
  for await (const one of all) yield* await to(one)
}

const JSON_TYPE = 'application/json'
const TEXT_TYPES = [/^application\/json$/i, /^application\/.*xml$/i, /^text\//i]

/** The stored bytes of a value and their content type; default: bytes, text, or else JSON. */
async function toBytes({
  value,
  contentType,
}: Pick<crawlee.KeyValueStoreRecord, 'value' | 'contentType'>): Promise<RecordContent> {
  const bytes = await readBytes(value)
  if (bytes) return { value: bytes, contentType: contentType ?? 'application/octet-stream' }
  if (typeof value === 'string')
    return { value: Buffer.from(value), contentType: contentType ?? 'text/plain; charset=utf-8' }
  const text = asJson(value)
  return { value: Buffer.from(text), contentType: contentType ?? `${JSON_TYPE}; charset=utf-8` }
}

/** JSON is parsed, text is text, and all else is the bytes that it was. */
function fromBytes(value: Uint8Array, contentType: string): unknown {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  const [type = '', ...parameters] = contentType.split(';').map((part) => part.trim())
  const charset = parameters.find((one) => /^charset=/i.test(one))?.slice('charset='.length)
  const encoding = charset?.replaceAll('"', '') ?? 'utf8'
  if (!TEXT_TYPES.some((one) => one.test(type)) || !Buffer.isEncoding(encoding)) return bytes
  const text = bytes.toString(encoding)
  return type.toLowerCase() === JSON_TYPE ? JSON.parse(text) : text
}

async function readBytes(value: unknown): Promise<Uint8Array | null> {
  if (value instanceof ArrayBuffer) return new Uint8Array(value)
  if (ArrayBuffer.isView(value))
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  if (!isStream(value)) return null
  const parts: Uint8Array[] = []
  for await (const part of value) parts.push(typeof part === 'string' ? Buffer.from(part) : part)
  return Buffer.concat(parts)
}

function isStream(value: unknown): value is AsyncIterable<Uint8Array | string> {
  return typeof value === 'object' && value !== null && 'pipe' in value && 'on' in value
}

function asJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2) as string | undefined
  if (text === undefined)
    throw new TypeError(`A ${typeof value} is no value of a record: give bytes, text, or JSON.`)
  return text
}
