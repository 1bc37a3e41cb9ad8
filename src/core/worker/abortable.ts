/** Rejects when the signal fires, even if the work ignores the signal and goes on. */
export function abortable<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    signal.throwIfAborted()
    const onAbort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', onAbort, { once: true })
    const settled = (): void => signal.removeEventListener('abort', onAbort)
    Promise.try(work)
      .then(resolve, reject)
      .finally(settled)
      .catch(() => {})
  })
}
