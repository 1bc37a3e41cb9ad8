/** Rejects with `late()` if the promise has not settled in time. */
export async function withTimeout<T>(
  ms: number,
  promise: Promise<T>,
  makeError: () => Error,
): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(makeError()), ms)
  // What comes after that is of no use to the caller.
  promise.catch(() => {})
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
