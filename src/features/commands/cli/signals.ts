import { EXIT } from '../../../core/model/exit-codes.ts'

/** A supervisor of commands, as far as signals reach it. */
export type Stoppable = { stop(by: string): void; forceStop(): void }

/**
 * The first SIGTERM or SIGINT ends the command and everything it started, the second kills them. A process manager whose
 * channel to this process closed counts as the first: its next copy would wait for this one. Returns a function that
 * removes the handlers.
 */
export function onCommandSignals(command: Stoppable, log: (message: string) => void): () => void {
  let signalCount = 0
  const onSignal = (by: string): void => {
    signalCount++
    if (signalCount === 1) {
      log(`${by}: ending the command and all it started. Once more to kill it at once.`)
      command.stop(by)
    } else if (signalCount === 2) {
      log(`${by} again: killing it.`)
      command.forceStop()
    } else if (signalCount === 3) {
      log(
        `${by} a third time: leaving. The watchdog goes on ending the command, and holds its source until then.`,
      )
      process.exit(EXIT.resumable)
    }
  }
  const onDisconnect = (): void => {
    if (signalCount === 0) onSignal('the process manager is gone')
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  process.on('disconnect', onDisconnect)
  return () => {
    process.off('SIGTERM', onSignal)
    process.off('SIGINT', onSignal)
    process.off('disconnect', onDisconnect)
  }
}
