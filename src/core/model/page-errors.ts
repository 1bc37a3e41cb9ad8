import type { ErrorData } from './error-data.ts'
import { UnstuckError, UsageError } from './errors.ts'
import { parseDuration, type Duration } from './time.ts'

/**
 * Thrown by a page that must not be retried: its target fails at once.
 * @example if (response.status === 404) throw new NonRetryableError(`${url} is gone`)
 */
export class NonRetryableError extends UnstuckError<'E_NOT_RETRYABLE'> {
  /** `message` becomes the target's error. */
  constructor(message: string, options?: ErrorOptions) {
    if (typeof message !== 'string') throw new UsageError('NonRetryableError takes a message.')
    super('E_NOT_RETRYABLE', message, {}, options)
  }
}

/**
 * Thrown by a page that knows when to come back: after a duration, at a date, or when the `Retry-After` of a response allows it
 * so. Without a time that can be read, the usual pause applies. It counts as a retry like any error.
 * @example if (response.status === 429) throw new RetryLaterError(response)
 */
export class RetryLaterError extends UnstuckError<'E_RETRY_LATER'> {
  /** `after`: `'5m'`, a date, or a response with `Retry-After`. */
  constructor(
    after?: Duration | Date | Response,
    { message = 'asked to come back later', ...options }: ErrorOptions & { message?: string } = {},
  ) {
    const time = readRetryTime(after)
    if (!time || typeof message !== 'string')
      throw new UsageError(
        "RetryLaterError takes a duration like '5m', a date or a response, and { message } in text.",
      )
    super('E_RETRY_LATER', message, time, options)
  }
}

/** Returns null for anything that is neither a duration, a date nor a response. */
function readRetryTime(after: unknown): ErrorData['E_RETRY_LATER'] | null {
  if (after === undefined) return { afterMs: null, at: null }
  if (after instanceof Date) return atDate(after)
  const { headers } = (after ?? {}) as { headers?: { get?: (name: string) => unknown } }
  if (typeof headers?.get === 'function') return readRetryAfter(headers.get('retry-after'))
  const afterMs = typeof after === 'string' ? parseDuration(after) : null
  return afterMs === null ? null : { afterMs, at: null }
}

/** Reads seconds or an HTTP date. */
function readRetryAfter(value: unknown): ErrorData['E_RETRY_LATER'] {
  if (typeof value !== 'string' || value.trim() === '') return { afterMs: null, at: null }
  const seconds = Number(value)
  if (Number.isNaN(seconds)) return atDate(new Date(value))
  return { afterMs: seconds >= 0 && seconds < Infinity ? seconds * 1_000 : null, at: null }
}

function atDate(date: Date): ErrorData['E_RETRY_LATER'] {
  return { afterMs: null, at: Number.isNaN(date.getTime()) ? null : date.toISOString() }
}
