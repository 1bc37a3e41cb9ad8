import type { Policy } from '../model/policy.ts'
import type { ErrorData } from '../model/error-data.ts'
import { UnstuckError } from '../model/errors.ts'
import type { Millis } from '../model/time.ts'

export type RetryDecision =
  | { readonly action: 'retry'; readonly afterMs: number }
  | { readonly action: 'fail' }

/** Longer pauses are taken for this one: PostgreSQL has no interval for every number. */
const RETRY_MAX_MS = 365 * 86_400_000

/** Decides what follows an error of a page handler. `errors`: how many came before it since the last page; `now`: wall clock. */
export function decideRetry(
  error: unknown,
  errors: number,
  policy: Policy,
  random: number,
  now: Millis,
): RetryDecision {
  // The same content would be refused again.
  if (UnstuckError.is(error, 'E_PAGE_REJECTED') || UnstuckError.is(error, 'E_NOT_RETRYABLE'))
    return { action: 'fail' }
  if (errors >= policy.retries) return { action: 'fail' }
  const afterMs = UnstuckError.is(error, 'E_RETRY_LATER') ? requestedPause(error.data, now) : null
  if (afterMs !== null) return { action: 'retry', afterMs }
  const full = Math.min(policy.backoffMs * 2 ** Math.min(errors, 60), policy.backoffMaxMs)
  // Half fixed, half random: targets that failed together do not come back together.
  return { action: 'retry', afterMs: Math.round(full / 2 + (full / 2) * random) }
}

/** Returns null when no time was given, or none that could be read. */
function requestedPause({ afterMs, at }: ErrorData['E_RETRY_LATER'], now: Millis): number | null {
  const ms = at === null ? afterMs : Math.max(0, Date.parse(at) - now)
  if (ms === null || !Number.isFinite(ms) || ms < 0) return null
  return Math.round(Math.min(ms, RETRY_MAX_MS))
}
