import type { IncomingMessage } from 'node:http'
import { messageOf } from '../../model/errors.ts'
import { badJson, notJson, tooLarge } from './refusal.ts'

const DEPTH_MAX = 32
/** An answer before the body is read to its end gets lost with many clients: so the rest is read, and thrown away. */
const DISCARD_BYTES_MAX = 64 * 1024 * 1024
const DISCARD_MS_MAX = 2_000

/** The body as JSON; undefined when there is none. Too much of it is refused before it is in memory. */
export async function readJson(request: IncomingMessage, bytesMax: number): Promise<unknown> {
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
  if (Number(length) > bytesMax) throw tooLarge(bytesMax)
  const bytes = await readBytes(request, bytesMax)
  return bytes.length === 0 ? undefined : parse(bytes)
}

/** Reads and throws away what is left of a request that is refused. False when there is no end to it. */
export async function discardRest(request: IncomingMessage): Promise<boolean> {
  if (request.complete || request.destroyed) return request.complete
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, DISCARD_MS_MAX)
  let left = DISCARD_BYTES_MAX
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) resolve()
  })
  request.once('end', resolve).once('close', resolve).once('error', resolve)
  await promise
  clearTimeout(timer)
  return request.complete
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function isJsonType(type: string | undefined): boolean {
  return /^application\/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i.test(type ?? '')
}

async function readBytes(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  // Leaving the loop must not close the connection: the answer goes out on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += (chunk as Buffer).length
    if (size > bytesMax) throw tooLarge(bytesMax)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

function parse(bytes: Buffer): unknown {
  // Looked at before it is parsed: a million brackets are small as text and large as lists.
  if (isTooDeep(bytes)) throw badJson(`it is nested deeper than ${DEPTH_MAX} levels`)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw badJson('it is not UTF-8')
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw badJson(messageOf(error))
  }
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c]
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d]

function isTooDeep(bytes: Buffer): boolean {
  let depth = 0
  let isText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (isText) {
      if (byte === BACKSLASH) at++
      else if (byte === QUOTE) isText = false
    } else if (byte === QUOTE) isText = true
    else if (byte === LIST || byte === OBJECT) {
      if (++depth > DEPTH_MAX) return true
    } else if (byte === LIST_END || byte === OBJECT_END) depth--
  }
  return false
}
