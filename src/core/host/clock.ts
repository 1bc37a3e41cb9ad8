import { setTimeout as sleepFor } from 'node:timers/promises'

/** Time and chance inside a process. Durations are monotonic; only the store's clock decides about leases. */
export type Clock = {
  /** Milliseconds since some moment, never set back. */
  now(): number
  /** Resolves after the time, or at once when the signal fires. Never rejects. */
  sleep(ms: number, wake?: AbortSignal): Promise<void>
  /** From 0 to 1. */
  random(): number
}

/** What a timer can wait at most; asked for more, it would fire at once. */
export const TIMER_MAX_MS = 2 ** 31 - 1

export const REAL_CLOCK: Clock = {
  now: () => performance.now(),
  sleep: async (ms, wake) => {
    await sleepFor(Math.max(0, ms), undefined, wake ? { signal: wake } : {}).catch(() => {})
  },
  random: () => Math.random(),
}
