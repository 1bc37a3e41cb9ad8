import { setTimeout as sleep } from 'node:timers/promises'

/** Waits; returns early when the signal fires. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}

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
    await pause(everyMs, signal)
  }
}
