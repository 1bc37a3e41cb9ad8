import { messageOf } from '../../core/model/errors.ts'
import type { HttpError } from './errors.ts'
import type { JsonRequest } from './node-adapter.ts'

const DEPTH_MAX = 32

/** How an API words what is wrong with a body. */
export type BodyErrors = {
  readonly notJson: (reason: string) => HttpError
  readonly badJson: (reason: string) => HttpError
  readonly tooLarge: (bytesMax: number) => HttpError
}

/**
 * Reads the body of a request as JSON. Returns undefined if it is empty. Other content types are refused, so that no form
 * or script of another site can send one, and a body above the limit is refused before it is in memory.
 */
export async function readJson(
  { headers, body }: JsonRequest,
  bytesMax: number,
  errors: BodyErrors,
): Promise<unknown> {
  const encoding = headers.get('content-encoding') ?? 'identity'
  if (encoding !== 'identity')
    throw errors.notJson(`The body is compressed (${encoding.slice(0, 40)}).`)
  const type = headers.get('content-type')
  if (!isJsonType(type)) {
    throw errors.notJson(
      type === null ? 'The body has no type.' : `The body is ${type.slice(0, 80)}.`,
    )
  }
  if (Number(headers.get('content-length') ?? 0) > bytesMax) throw errors.tooLarge(bytesMax)
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > bytesMax) throw errors.tooLarge(bytesMax)
    chunks.push(chunk)
  }
  return size === 0 ? undefined : parseJson(Buffer.concat(chunks), errors)
}

/** Returns whether the headers announce a body. */
export function hasBody({ headers }: Pick<JsonRequest, 'headers'>): boolean {
  return headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) > 0
}

export function isJsonType(type: string | null): boolean {
  return /^application\/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i.test(type ?? '')
}

function parseJson(bytes: Uint8Array, { badJson }: BodyErrors): unknown {
  // Checked before parsing: a million brackets are small as text and large as arrays.
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

function isTooDeep(bytes: Uint8Array): boolean {
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
