import type { IncomingMessage } from 'node:http'
import { isJsonType, parseJson } from '../../../lib/http/json-bytes.ts'
import { invalidJson, notJson, bodyTooLarge } from './http-error.ts'

/** The body as JSON; undefined when there is none. Too much of it is refused before it is in memory. */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  if (!hasBody(request)) return undefined
  const {
    'content-type': type,
    'content-encoding': encoding,
    'content-length': length,
  } = request.headers
  if (encoding !== undefined && encoding !== 'identity') {
    throw notJson(`The body is compressed (${encoding.slice(0, 40)}).`)
  }
  if (!isJsonType(type)) {
    throw notJson(
      type === undefined ? 'The body has no type.' : `The body is ${type.slice(0, 80)}.`,
    )
  }
  if (Number(length) > maxBytes) throw bodyTooLarge(maxBytes)
  const bytes = await readBytes(request, maxBytes)
  return bytes.length === 0 ? undefined : parseJson(bytes, invalidJson)
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

async function readBytes(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  // Leaving the loop must not close the connection: the answer goes out on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += (chunk as Buffer).length
    if (size > maxBytes) throw bodyTooLarge(maxBytes)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}
