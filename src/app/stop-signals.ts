import { EXIT } from '../core/model/exit-codes.ts'
import { STOP_MESSAGE } from './worker-processes.ts'

export type ShutdownOptions = {
  /** The longest time from the first signal to the exit. Process managers kill later than that. */
  readonly deadlineMs: number
  /** First signal: stop gracefully. */
  readonly stop: (because: string) => void
  /** Second signal or deadline: called right before the exit. */
  readonly kill?: () => void
  readonly log: (message: string) => void
}

/**
 * Handles SIGTERM and SIGINT: the first stops gracefully and logs how to force the exit, the second and the deadline exit
 * at once. A worker process also stops when its parent requests it or dies. Returns a function that removes the handlers.
 */
export function handleStopSignals(options: ShutdownOptions): () => void {
  let signals = 0
  let deadlineTimer: NodeJS.Timeout | undefined
  const exitNow = (message: string): void => {
    options.log(message)
    options.kill?.()
    process.exit(EXIT.resumable)
  }
  const requestStop = (because: string, message: string): void => {
    if (deadlineTimer) return
    options.log(message)
    deadlineTimer = setTimeout(() => {
      const seconds = options.deadlineMs / 1000
      exitNow(`Still not stopped after ${seconds} s: ending now. The rest is resumable.`)
    }, options.deadlineMs)
    options.stop(because)
  }
  const onSignal = (signal: NodeJS.Signals): void => {
    if (++signals > 1)
      exitNow(`${signal} again: ending now. What was saved is safe; the rest is resumable.`)
    requestStop(
      signal,
      `${signal}: finishing the pages in progress, then stopping. Send it again to end at once.`,
    )
  }
  // The parent sends a message, not a signal: systemd signals every process itself, and a second signal would exit at once.
  const onMessage = (message: unknown): void => {
    if (message !== STOP_MESSAGE) return
    requestStop(
      'asked by the parent process',
      'Stop: finishing the pages in progress, then stopping.',
    )
  }
  const onOrphaned = (): void => {
    const message = 'The parent process is gone: finishing the pages in progress, then stopping.'
    requestStop('the parent process is gone', message)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  process.on('message', onMessage)
  process.on('disconnect', onOrphaned)
  // The parent died before the handlers were installed.
  if (process.connected === false) onOrphaned()
  return () => {
    clearTimeout(deadlineTimer)
    process.off('SIGTERM', onSignal)
    process.off('SIGINT', onSignal)
    process.off('message', onMessage)
    process.off('disconnect', onOrphaned)
  }
}
