import { setTimeout as sleepFor } from 'node:timers/promises'

/** Time and random numbers of a process, replaceable in tests. Leases are decided by the store's clock, not by this one. */
export type Clock = {
  /** Monotonic milliseconds, for durations. */
  now(): number
  /** Milliseconds since 1970. May jump: only for what happens on the minute. */
  wallNow(): number
  /** Resolves after the time, or as soon as the signal fires. Never rejects. */
  sleep(ms: number, wake?: AbortSignal): Promise<void>
  /** From 0 to 1. */
  random(): number
}

/** The longest delay of a timer. Node fires a longer one at once. */
export const TIMER_MAX_MS = 2 ** 31 - 1

export const REAL_CLOCK: Clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  sleep: async (ms, wake) => {
    await sleepFor(Math.max(0, ms), undefined, wake ? { signal: wake } : {}).catch(() => {})
  },
  random: () => Math.random(),
}
