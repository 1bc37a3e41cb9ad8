import type { Policy } from '../model/policy.ts'
import { PageRejectedError, RetryLaterError } from '../model/errors.ts'

export type RetryDecision =
  | { readonly action: 'retry'; readonly afterMs: number }
  | { readonly action: 'fail' }

/** Longer pauses are taken for this one: PostgreSQL has no interval for every number. */
const RETRY_MAX_MS = 365 * 86_400_000

/** What follows an error of a page handler. `errors`: how many came before it since the last page. */
export function decideRetry(
  error: unknown,
  errors: number,
  policy: Policy,
  random: number,
): RetryDecision {
  // The same content would be refused again.
  if (error instanceof PageRejectedError) return { action: 'fail' }
  if (errors >= policy.retries) return { action: 'fail' }
  // A Retry-After that could not be read makes a time that is none.
  if (error instanceof RetryLaterError && Number.isFinite(error.afterMs) && error.afterMs >= 0) {
    return { action: 'retry', afterMs: Math.round(Math.min(error.afterMs, RETRY_MAX_MS)) }
  }
  const full = Math.min(policy.backoffMs * 2 ** Math.min(errors, 60), policy.backoffMaxMs)
  // Half fixed, half random: targets that failed together do not come back together.
  return { action: 'retry', afterMs: Math.round(full / 2 + (full / 2) * random) }
}
