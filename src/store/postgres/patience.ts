import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for something to end, but no longer than this: a server that no longer answers keeps nobody waiting. */
export async function waitAtMost(ms: number, ending: Promise<unknown>): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  try {
    await Promise.race([ending, sleep(ms, undefined, { signal })])
  } finally {
    over.abort()
  }
}
