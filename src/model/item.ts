import { hash } from 'node:crypto'
import type { RunId } from './id.ts'
import type { Millis } from './time.ts'
import { URL_KEY_VERSION, canonicalUrl } from './url.ts'

/** A record as a page hands it over: an address, or a key of the user's own, and any JSON. */
export type NewItem = { url: string; key?: string; data: unknown } | { key: string; data: unknown }

/** A record ready to be saved. Saving twice is saving once; new data updates the old. */
export type Item = {
  readonly key: string
  /** Version of the rule that made the key of an address; 0 for a key of the user's own. */
  readonly keyVersion: number
  readonly url: string | null
  /** JSON text. */
  readonly data: string
}

export type SavedItem = {
  readonly key: string
  readonly url: string | null
  readonly data: unknown
  /** Grows when the data changes; 1 for an item that was only ever seen as it is. */
  readonly version: number
  readonly run: RunId
  readonly firstSeenAt: Millis
  readonly lastSeenAt: Millis
  readonly changedAt: Millis
}

/** PostgreSQL's index holds keys up to about 2,700 bytes; longer ones keep their start and gain a digest. */
const KEY_BYTES_MAX = 1_000

export function boundedKey(text: string): string {
  // Half a character is no text to a database: it would keep another key than the one it was given.
  const key = text.toWellFormed()
  if (Buffer.byteLength(key) <= KEY_BYTES_MAX) return key
  return `${key.slice(0, 200).toWellFormed()}…sha256:${hash('sha256', key)}`
}

/** Null when it has neither a usable address nor a key. */
export function makeItem(item: NewItem): Item | null {
  const url = 'url' in item && typeof item.url === 'string' ? item.url : null
  const data = JSON.stringify(item.data ?? null) ?? 'null'
  if (typeof item.key === 'string' && item.key !== '') {
    return { key: boundedKey(item.key), keyVersion: 0, url, data }
  }
  const canonical = url === null ? null : canonicalUrl(url)
  if (canonical === null) return null
  return { key: boundedKey(canonical), keyVersion: URL_KEY_VERSION, url, data }
}
