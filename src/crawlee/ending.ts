/** A request as Crawlee gives it back after a try. */
export type TriedRequest = {
  readonly url: string
  readonly uniqueKey: string
  readonly handledAt?: string
  readonly errorMessages?: readonly string[]
  readonly userData?: Readonly<Record<string, unknown>>
}

export type Ending = 'handled' | 'given up' | 'put back'

/** Crawlee's word for a request whose handler failed, while it says what becomes of it. */
const ERROR_HANDLER = 5

/** What became of it. Crawlee calls handled what it has given up as well, and tells the two apart in its own notes only. */
export function endingOf({ handledAt, errorMessages, userData }: TriedRequest): Ending {
  if (!handledAt) return 'put back'
  const { state } = (userData?.['__crawlee'] ?? {}) as { state?: number }
  return state === ERROR_HANDLER && (errorMessages?.length ?? 0) > 0 ? 'given up' : 'handled'
}

export function errorOf({ errorMessages }: TriedRequest): string {
  return (errorMessages?.at(-1) ?? 'put back by the crawler').split('\n', 1)[0]!
}
