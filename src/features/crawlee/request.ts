import { hash } from 'node:crypto'
import type { ClaimedTarget } from '../../core/model/claim.ts'
import type { TargetInput, Target } from '../../core/model/target.ts'
import { iso } from '../../core/model/time.ts'
import { escapeText, escapeJson, unescapeText, unescapeJson } from './escape.ts'

/** A request as Crawlee hands it over: plain JSON, with whatever else Crawlee has in it. */
export type StoredRequest = {
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
  const key = escapeText(uniqueKey)
  if (Buffer.byteLength(key) <= KEY_BYTES_MAX) return key
  return `${key.slice(0, 60).toWellFormed()}… ${hash('sha256', key, 'hex')}`
}

/** A copy of the request for the cursor of its target, because Crawlee keeps changing its own object. */
export function toStored(request: NewRequest): unknown {
  return escapeJson({ ...request, id: requestId(request.uniqueKey) })
}

export function requestToTarget(request: NewRequest, forefront: boolean): TargetInput {
  const [key, url] = [targetKey(request.uniqueKey), escapeText(request.url)]
  return { key, url, cursor: toStored(request), ...(forefront && { forefront }) }
}

/** What its next handler gets. One that had been given up and was put back in line by a person begins anew. */
export function claimToRequest(
  claimed: Pick<ClaimedTarget, 'cursor' | 'key' | 'url'>,
): StoredRequest {
  const stored = parseCursor(claimed.cursor)
  const { handledAt, ...open } = stored
  const uniqueKey = stored.uniqueKey ?? unescapeText(claimed.key)
  return withoutNulls({
    ...open,
    ...(handledAt !== undefined && { retryCount: 0, errorMessages: [] }),
    id: requestId(uniqueKey),
    uniqueKey,
    url: stored.url ?? unescapeText(claimed.url ?? ''),
  })
}

/** Converts a target back to its request. */
export function targetToRequest(target: Target): StoredRequest {
  const { handledAt: storedHandledAt, retryCount, errorMessages } = parseCursor(target.cursor)
  const request = claimToRequest(target)
  if (!isHandled(target)) return request
  const handledAt = storedHandledAt ?? iso(target.finishedAt ?? target.lastActivityAt)
  return withoutNulls({ ...request, retryCount, errorMessages, handledAt })
}

function parseCursor(cursor: unknown): Partial<StoredRequest> {
  return unescapeJson(cursor) ?? {}
}

/** For Crawlee: nothing will be done about it any more, whatever became of it. */
export function isHandled({ status }: Pick<Target, 'status'>): boolean {
  return status !== 'planned' && status !== 'in_progress'
}

/** Crawlee checks what it gets back, and takes a null for a mistake. */
function withoutNulls(request: Record<string, unknown>): StoredRequest {
  const present = Object.entries(request).filter(
    ([, value]) => value !== null && value !== undefined,
  )
  return Object.fromEntries(present) as StoredRequest
}
