import { hash } from 'node:crypto'
import type { Claimed } from '../../core/model/claim.ts'
import type { NewTarget, Target } from '../../core/model/target.ts'
import { iso } from '../../core/model/time.ts'
import { escaped, escapedJson, unescaped, unescapedJson } from './escape.ts'

/** A request as Crawlee hands it over: plain JSON, with whatever else Crawlee has in it. */
export type KeptRequest = {
  readonly id: string
  readonly url: string
  readonly uniqueKey: string
  readonly retryCount?: number
  readonly handledAt?: string
  readonly [field: string]: unknown
}

/** One that is to be kept; whatever else is in it is kept as well. */
export type NewRequest = { readonly url: string; readonly uniqueKey: string }

const ID_LENGTH = 15
/** What the store takes as a key of a target. */
const KEY_BYTES_MAX = 1_000

/** The id that Crawlee itself makes of a unique key: it remembers requests by it. */
export function requestId(uniqueKey: string): string {
  return hash('sha256', uniqueKey, 'base64').replace(/[+/=]/g, '').slice(0, ID_LENGTH)
}

/** The key of its target: the unique key, or a digest of one that is too long to be a key. */
export function targetKey(uniqueKey: string): string {
  const key = escaped(uniqueKey)
  if (Buffer.byteLength(key) <= KEY_BYTES_MAX) return key
  return `${key.slice(0, 60).toWellFormed()}… ${hash('sha256', key, 'hex')}`
}

/** What is kept of it, in the cursor of its target: plain data, as of now. Crawlee goes on changing its own object. */
export function keep(request: NewRequest): unknown {
  return escapedJson({ ...request, id: requestId(request.uniqueKey) })
}

export function toTarget(request: NewRequest, forefront: boolean): NewTarget {
  const [key, url] = [targetKey(request.uniqueKey), escaped(request.url)]
  return { key, url, cursor: keep(request), ...(forefront && { forefront }) }
}

/** What its next handler gets. One that had been given up and was put back in line by a person begins anew. */
export function toRequest(claimed: Pick<Claimed, 'cursor' | 'key' | 'url'>): KeptRequest {
  const kept = read(claimed.cursor)
  const { handledAt, ...open } = kept
  const uniqueKey = kept.uniqueKey ?? unescaped(claimed.key)
  return withoutNulls({
    ...open,
    ...(handledAt !== undefined && { retryCount: 0, errorMessages: [] }),
    id: requestId(uniqueKey),
    uniqueKey,
    url: kept.url ?? unescaped(claimed.url ?? ''),
  })
}

/** A target that somebody asks about, as the request that it is. */
export function asRequest(target: Target): KeptRequest {
  const { handledAt: saidAt, retryCount, errorMessages } = read(target.cursor)
  const request = toRequest(target)
  if (!isHandled(target)) return request
  const handledAt = saidAt ?? iso(target.finishedAt ?? target.lastActivityAt)
  return withoutNulls({ ...request, retryCount, errorMessages, handledAt })
}

function read(cursor: unknown): Partial<KeptRequest> {
  return unescapedJson(cursor) ?? {}
}

/** For Crawlee: nothing will be done about it any more, whatever became of it. */
export function isHandled({ status }: Pick<Target, 'status'>): boolean {
  return status !== 'planned' && status !== 'in_progress'
}

/** Crawlee checks what it gets back, and takes a null for a mistake. */
function withoutNulls(request: Record<string, unknown>): KeptRequest {
  const there = Object.entries(request).filter(([, value]) => value !== null && value !== undefined)
  return Object.fromEntries(there) as KeptRequest
}
