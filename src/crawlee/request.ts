import { hash } from 'node:crypto'
import type { Claimed } from '../model/claim.ts'
import type { NewTarget, Target } from '../model/target.ts'
import { iso } from '../model/time.ts'

/** A request as Crawlee hands it over, and as it is kept: plain JSON, with whatever else Crawlee has in it. */
export type KeptRequest = {
  readonly id: string
  readonly url: string
  readonly uniqueKey: string
  readonly retryCount?: number
  readonly handledAt?: string
  readonly [field: string]: unknown
}

const ID_LENGTH = 15
/** What the store takes as a key of a target. */
const KEY_BYTES_MAX = 1_000

/** The id that Crawlee itself makes of a unique key: it remembers requests by it. */
export function requestId(uniqueKey: string): string {
  return hash('sha256', uniqueKey, 'base64').replace(/[+/=]/g, '').slice(0, ID_LENGTH)
}

/** The key of its target: the unique key, or a digest of one that is too long to be a key. */
export function targetKey(uniqueKey: string): string {
  if (Buffer.byteLength(uniqueKey) <= KEY_BYTES_MAX) return uniqueKey
  return `${uniqueKey.slice(0, 60)}… ${hash('sha256', uniqueKey, 'hex')}`
}

/** Plain data, as of now: Crawlee goes on changing its own object. */
export function keep(request: { readonly uniqueKey: string; readonly url: string }): KeptRequest {
  const id = requestId(request.uniqueKey)
  return JSON.parse(JSON.stringify({ ...request, id })) as KeptRequest
}

export function toTarget(request: KeptRequest, forefront: boolean): NewTarget {
  const { uniqueKey, url } = request
  return { key: targetKey(uniqueKey), url, cursor: request, ...(forefront && { forefront }) }
}

/** What its next handler gets. One that had been given up and was put back in line by a person begins anew. */
export function toRequest(claimed: Pick<Claimed, 'cursor' | 'key' | 'url'>): KeptRequest {
  const kept = (claimed.cursor ?? {}) as Partial<KeptRequest>
  const { handledAt, ...open } = kept
  const uniqueKey = kept.uniqueKey ?? claimed.key
  return withoutNulls({
    ...open,
    ...(handledAt !== undefined && { retryCount: 0, errorMessages: [] }),
    id: requestId(uniqueKey),
    uniqueKey,
    url: kept.url ?? claimed.url ?? '',
  })
}

/** A target that somebody asks about, as the request that it is. */
export function asRequest(target: Target): KeptRequest {
  const { handledAt: saidAt } = (target.cursor ?? {}) as Partial<KeptRequest>
  const request = toRequest(target)
  if (!isHandled(target)) return request
  const handledAt = saidAt ?? iso(target.finishedAt ?? target.lastActivityAt)
  const { retryCount, errorMessages } = (target.cursor ?? {}) as Partial<KeptRequest>
  return withoutNulls({ ...request, retryCount, errorMessages, handledAt })
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
