import { decideRetry } from '../../../core/decide/retry.ts'
import { messageOf } from '../../../core/model/errors.ts'
import { NonRetryableError, RetryLaterError } from '../../../core/model/page-errors.ts'
import { policyForGroup, type Policy } from '../../../core/model/policy.ts'
import { parseDuration, type Duration } from '../../../core/model/time.ts'
import type { Clock } from '../../../core/host/clock.ts'
import type { Failure } from '../../../core/store/store.ts'
import type { HeldTarget } from './held-target.ts'

type PageFailure = {
  readonly by: 'fail'
  readonly error: string
  /** False: the target fails at once. */
  readonly retry: boolean
  /** A duration, or the value of a `Retry-After` header. */
  readonly retryAfter: string | undefined
}
type FailedEnd = PageFailure | { readonly by: 'park'; readonly error: string }

/** How the command ended its claim of a target. */
export type ClaimEnd = { readonly by: 'finish' } | { readonly by: 'release' } | FailedEnd

/** The status of the target afterwards, and when it can be claimed again if its page is retried. */
export type ClaimEndReply = { readonly status: string; readonly retryInMs: number | null }

/** Returns what becomes of a target whose page failed. Decided as for a page of a crawl in TypeScript that throws. */
export function failureOf(
  held: HeldTarget,
  end: FailedEnd,
  policy: Policy,
  clock: Pick<Clock, 'random' | 'wallNow'>,
): Failure {
  const error = messageOf(end.error)
  if (end.by === 'park') return { ...held.claim, error, becomes: 'parked' }
  const limits = policyForGroup(policy, held.claimed.group)
  const decision = decideRetry(causeOf(end), held.errors, limits, clock.random(), clock.wallNow())
  const becomes = decision.action === 'retry' ? { retryInMs: decision.afterMs } : 'failed'
  return { ...held.claim, error, becomes }
}

function causeOf({ error, retry, retryAfter }: PageFailure): Error {
  if (!retry) return new NonRetryableError(error)
  if (retryAfter === undefined) return new Error(error)
  if (parseDuration(retryAfter) !== null) return new RetryLaterError(retryAfter as Duration)
  return new RetryLaterError(new Response(null, { headers: { 'retry-after': retryAfter } }))
}
