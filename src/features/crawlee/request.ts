import { hash } from 'node:crypto'
import type { ClaimedTarget } from '../../core/model/claim.ts'
import type { TargetInput, Target } from '../../core/model/target.ts'
import { iso } from '../../core/model/time.ts'
import { escapeText, escapeJson, unescapeText, unescapeJson } from './escape.ts'

/** A request as Crawlee passes it: plain JSON, with all of Crawlee's own fields. */
export type StoredRequest = {
  readonly id: string
  readonly url: string
  readonly uniqueKey: string
  readonly retryCount?: number
  readonly handledAt?: string
  readonly [field: string]: unknown
}

/** A request to store; its other fields are stored too. */
export type NewRequest = {
  readonly url: string
  readonly uniqueKey: string
  /** It was handled before: it is kept and not crawled. */
  readonly handledAt?: string | undefined
}

const ID_LENGTH = 15
/** The maximum for a target's key. */
const KEY_BYTES_MAX = 1_000

/** The id that Crawlee itself derives from a unique key. */
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
  const done = Boolean(request.handledAt)
  return {
    key,
    url,
    cursor: toStored(request),
    ...(forefront && { forefront }),
    ...(done && { done }),
  }
}

/** The request for its next handler. One that had failed and was retried by an operator starts with no retries. */
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

/** Whether Crawlee counts it as handled: it has ended in any way. */
export function isHandled({ status }: Pick<Target, 'status'>): boolean {
  return status !== 'planned' && status !== 'in_progress'
}

/** Crawlee rejects nulls. */
function withoutNulls(request: Record<string, unknown>): StoredRequest {
  const present = Object.entries(request).filter(
    ([, value]) => value !== null && value !== undefined,
  )
  return Object.fromEntries(present) as StoredRequest
}
