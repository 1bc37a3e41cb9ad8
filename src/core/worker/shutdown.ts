import { EXIT } from '../model/exit-codes.ts'
import { STOP_MESSAGE } from './processes.ts'

export type ShutdownOptions = {
  /** From the first signal to the end, at most. It lies below the time of those who would kill us. */
  readonly deadlineMs: number
  /** The first signal: a graceful stop. */
  readonly stop: (because: string) => void
  /** The second signal, or the deadline: what is left to do in the moment before the end. */
  readonly kill?: () => void
  readonly log: (message: string) => void
}

/**
 * What SIGTERM and SIGINT do: the first asks for a graceful stop and says how to force it, the second ends at once, and so
 * does the deadline. A worker process also stops when its parent asks for it or dies. Call the result to take it back.
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
  // By a message and not by a signal: systemd signals every process itself, and a second signal would end it at once.
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
  // It died before anybody listened.
  if (process.connected === false) onOrphaned()
  return () => {
    clearTimeout(deadlineTimer)
    process.off('SIGTERM', onSignal)
    process.off('SIGINT', onSignal)
    process.off('message', onMessage)
    process.off('disconnect', onOrphaned)
  }
}
