const IMMEDIATE_RESTARTS = 3
const BACKOFF_MS = 500
const BACKOFF_MAX_MS = 30_000

/** An exit this soon after the start counts towards the delay of the next one. */
export const QUICK_EXIT_MS = 5_000

/** Returns the pause before a worker process is restarted: none, unless it ended right after its start several times in a row. */
export function restartDelayMs(quickExits: number): number {
  const over = quickExits - IMMEDIATE_RESTARTS
  return over <= 0 ? 0 : Math.min(BACKOFF_MS * 2 ** (over - 1), BACKOFF_MAX_MS)
}
