import { hash } from 'node:crypto'
import { cleanJson, cleanText, countReplaced, isClean } from './text.ts'
import { URL_KEY_VERSION, canonicalUrl } from './url.ts'

/** A record of a page: an address or a key of your own, and any JSON. */
export type NewItem<D = unknown> =
  | {
      /** Its address; a relative one is resolved against the page's. */
      url: string | URL
      /** Names it within its source. @default the canonical form of `url` */
      key?: string | undefined
      /** Any JSON. */
      data: D
    }
  | {
      /** Names it within its source. */
      key: string
      /** Any JSON. */
      data: D
    }

/** A record ready to be saved. Saving twice is saving once; new data updates the old. */
export type Item = {
  readonly key: string
  /** Version of the rule that made the key of an address; 0 for a key of the user's own. */
  readonly keyVersion: number
  readonly url: string | null
  /** JSON text. */
  readonly data: string
}

/** PostgreSQL's index holds keys up to about 2,700 bytes; longer ones keep their start and gain a digest. */
const KEY_BYTES_MAX = 1_000

export function boundedKey(text: string): string {
  if (!isClean(text)) return withDigest(text, text)
  return Buffer.byteLength(text) <= KEY_BYTES_MAX ? text : shortened(text, hash('sha256', text))
}

/** A key that no database can store is replaced in part: a digest of the original keeps it apart from others like it. */
function withDigest(key: string, original: string): string {
  // In UTF-8 every lone surrogate would be the same three bytes.
  return shortened(cleanText(key), hash('sha256', Buffer.from(original, 'utf16le')))
}

function shortened(key: string, digest: string): string {
  return `${key.slice(0, 200).toWellFormed()}…sha256:${digest}`
}

/** Null when it has neither a usable address nor a key. `onReplaced`: how many characters could not be stored. */
export function makeItem(
  item: NewItem,
  onReplaced: (count: number) => void = () => {},
): Item | null {
  const address = 'url' in item && item.url !== undefined ? String(item.url) : null
  const { json: data, replaced } = cleanJson(JSON.stringify(item.data ?? null) ?? 'null')
  const url = address === null ? null : cleanText(address)
  const made = (key: string, keyVersion: number): Item => ({ key, keyVersion, url, data })
  const own = typeof item.key === 'string' ? item.key : ''
  const dirty = replaced + countReplaced(address ?? '') + countReplaced(own)
  if (dirty > 0) onReplaced(dirty)
  if (own !== '') return made(boundedKey(own), 0)
  const canonical = address === null ? null : canonicalUrl(address)
  if (address === null || canonical === null) return null
  // `URL` replaces lone surrogates without a word, and drops a NUL at the end.
  return made(
    isClean(address) ? boundedKey(canonical) : withDigest(canonical, address),
    URL_KEY_VERSION,
  )
}
