import type { RequestResult } from '../ending.ts'

/** A request as Crawlee gives it back after a try. */
type TriedRequest = {
  readonly handledAt?: string
  readonly errorMessages?: readonly string[]
  readonly userData?: Readonly<Record<string, unknown>>
}

/** Crawlee's word for a request whose handler failed, while it says what becomes of it. */
const ERROR_HANDLER_STATE = 5

/** What became of it. Crawlee calls handled what it has given up as well, and tells the two apart in its own notes only. */
export function resultOf(request: TriedRequest, forefront: boolean): RequestResult {
  const { handledAt, errorMessages = [], userData } = request
  const error = (errorMessages.at(-1) ?? 'put back by the crawler').split('\n', 1)[0]!
  if (!handledAt) return { kind: 'put back', error, forefront }
  const { state } = (userData?.['__crawlee'] ?? {}) as { state?: number }
  const isGivenUp = state === ERROR_HANDLER_STATE && errorMessages.length > 0
  return isGivenUp ? { kind: 'given up', error } : { kind: 'handled' }
}
