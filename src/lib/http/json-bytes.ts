import { messageOf } from '../../core/model/errors.ts'

const DEPTH_MAX = 32

/** What the bytes say, or what `wrong` makes of why they cannot be read. */
export function parseJson(bytes: Uint8Array, toError: (reason: string) => Error): unknown {
  // Looked at before it is parsed: a million brackets are small as text and large as lists.
  if (isTooDeep(bytes)) throw toError(`it is nested deeper than ${DEPTH_MAX} levels`)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw toError('it is not UTF-8')
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw toError(messageOf(error))
  }
}

/** Whether a Content-Type header says JSON, in the one encoding that it has. */
export function isJsonType(type: string | null | undefined): boolean {
  return /^application\/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i.test(type ?? '')
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
