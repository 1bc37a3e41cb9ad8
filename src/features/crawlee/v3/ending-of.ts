import type { Ending } from '../ending.ts'

/** A request as Crawlee gives it back after a try. */
type TriedRequest = {
  readonly handledAt?: string
  readonly errorMessages?: readonly string[]
  readonly userData?: Readonly<Record<string, unknown>>
}

/** Crawlee's word for a request whose handler failed, while it says what becomes of it. */
const ERROR_HANDLER = 5

/** What became of it. Crawlee calls handled what it has given up as well, and tells the two apart in its own notes only. */
export function endingOf(request: TriedRequest, forefront: boolean): Ending {
  const { handledAt, errorMessages = [], userData } = request
  const error = (errorMessages.at(-1) ?? 'put back by the crawler').split('\n', 1)[0]!
  if (!handledAt) return { as: 'put back', error, forefront }
  const { state } = (userData?.['__crawlee'] ?? {}) as { state?: number }
  const isGivenUp = state === ERROR_HANDLER && errorMessages.length > 0
  return isGivenUp ? { as: 'given up', error } : { as: 'handled' }
}
