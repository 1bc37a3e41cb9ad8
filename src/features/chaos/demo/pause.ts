import { setTimeout as sleep } from 'node:timers/promises'

/** Waits; cut short, it simply ends. */
export async function pause(ms: number, over: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: over }).catch(() => {})
}

/** Asks again and again until there is an answer; null when it is over, or took too long. */
export async function until<T>(
  ask: () => Promise<T | null | undefined | false>,
  { everyMs, atMostMs, over }: { everyMs: number; atMostMs: number; over: AbortSignal },
): Promise<T | null> {
  const end = performance.now() + atMostMs
  for (;;) {
    const answer = await ask()
    if (answer !== null && answer !== undefined && answer !== false) return answer
    if (over.aborted || performance.now() > end) return null
    await pause(everyMs, over)
  }
}
