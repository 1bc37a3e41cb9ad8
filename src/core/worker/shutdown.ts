import { EXIT } from '../model/errors.ts'
import { STOP_MESSAGE } from './processes.ts'

export type ShutdownPlan = {
  /** From the first signal to the end, at most. It lies below the time of those who would kill us. */
  readonly deadlineMs: number
  /** The first signal: a graceful stop. */
  readonly stop: (because: string) => void
  /** The second signal, or the deadline: what is left to do in the moment before the end. */
  readonly end?: () => void
  readonly log: (message: string) => void
}

/**
 * What SIGTERM and SIGINT do: the first asks for a graceful stop and says how to force it, the second ends at once, and so
 * does the deadline. A worker process also stops when its parent asks for it or dies. Call the result to take it back.
 */
export function onStopSignals(plan: ShutdownPlan): () => void {
  let signals = 0
  let deadline: NodeJS.Timeout | undefined
  const endNow = (message: string): void => {
    plan.log(message)
    plan.end?.()
    process.exit(EXIT.resumable)
  }
  const ask = (because: string, message: string): void => {
    if (deadline) return
    plan.log(message)
    deadline = setTimeout(() => {
      const seconds = plan.deadlineMs / 1000
      endNow(`Still not stopped after ${seconds} s: ending now. The rest is resumable.`)
    }, plan.deadlineMs)
    plan.stop(because)
  }
  const onSignal = (signal: NodeJS.Signals): void => {
    if (++signals > 1)
      endNow(`${signal} again: ending now. What was saved is safe; the rest is resumable.`)
    ask(signal, `${signal}: finishing the pages in hand, then stopping. Once more to end at once.`)
  }
  // By a message and not by a signal: systemd signals every process itself, and a second signal would end it at once.
  const onMessage = (message: unknown): void => {
    if (message !== STOP_MESSAGE) return
    ask('asked by the parent process', 'Stop: finishing the pages in hand, then stopping.')
  }
  const onOrphaned = (): void => {
    const message = 'The parent process is gone: finishing the pages in hand, then stopping.'
    ask('the parent process is gone', message)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  process.on('message', onMessage)
  process.on('disconnect', onOrphaned)
  // It died before anybody listened.
  if (process.connected === false) onOrphaned()
  return () => {
    clearTimeout(deadline)
    process.off('SIGTERM', onSignal)
    process.off('SIGINT', onSignal)
    process.off('message', onMessage)
    process.off('disconnect', onOrphaned)
  }
}
