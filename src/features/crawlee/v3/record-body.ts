import type { KeyValueStoreRecord } from '@crawlee/types'

const JSON_TYPE = 'application/json'
const TEXT_TYPES = [/^application\/json$/i, /^application\/.*xml$/i, /^text\//i]

/** The stored bytes of a value and their content type; default: bytes, text, or else JSON. */
export async function toBytes({
  value,
  contentType,
}: Pick<KeyValueStoreRecord, 'value' | 'contentType'>): Promise<{
  value: Uint8Array
  contentType: string
}> {
  const bytes = await readBytes(value)
  if (bytes) return { value: bytes, contentType: contentType ?? 'application/octet-stream' }
  if (typeof value === 'string')
    return { value: Buffer.from(value), contentType: contentType ?? 'text/plain; charset=utf-8' }
  const text = asJson(value)
  return { value: Buffer.from(text), contentType: contentType ?? `${JSON_TYPE}; charset=utf-8` }
}

/** JSON is parsed, text is text, and all else is the bytes that it was. */
export function fromBytes(value: Uint8Array, contentType: string): unknown {
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
