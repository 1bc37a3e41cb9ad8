import process from 'node:process'

/** Aborted by the first Ctrl-C or SIGTERM; a second one ends the process as usual. */
export function untilInterrupted(): AbortSignal {
  const controller = new AbortController()
  const stop = (): void => controller.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  return controller.signal
}
