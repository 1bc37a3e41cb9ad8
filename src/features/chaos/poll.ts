import process from 'node:process'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { EXIT } from '../../core/model/exit-codes.ts'

/** Calls `probe` until it returns a value. Returns null when the signal fires or the time is up. */
export async function pollUntil<T>(
  probe: () => Promise<T | null | undefined | false>,
  { everyMs, timeoutMs, signal }: { everyMs: number; timeoutMs: number; signal: AbortSignal },
): Promise<T | null> {
  const end = performance.now() + timeoutMs
  for (;;) {
    const result = await probe()
    if (result !== null && result !== undefined && result !== false) return result
    if (signal.aborted || performance.now() > end) return null
    await REAL_CLOCK.sleep(everyMs, signal)
  }
}

/** Returns a signal that fires on Ctrl-C. A second Ctrl-C exits at once, and the exit handlers kill what still runs. */
export function untilStopped(onStop: () => void = () => {}): AbortSignal {
  const controller = new AbortController()
  const stop = (): void => {
    if (controller.signal.aborted) process.exit(EXIT.failed)
    controller.abort()
    onStop()
  }
  process.on('SIGINT', stop).on('SIGTERM', stop).on('SIGHUP', stop)
  return controller.signal
}

/** Resolves when the signal fires. */
export function whenAborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null)
    signal.addEventListener('abort', () => resolve(null), { once: true })
  })
}
