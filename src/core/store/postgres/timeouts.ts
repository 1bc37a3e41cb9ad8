import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'

/** Waits for something to end, but no longer than this: the server may no longer respond. */
export async function waitAtMost(ms: number, promise: Promise<unknown>): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  try {
    await Promise.race([promise, sleep(ms, undefined, { signal })])
  } finally {
    over.abort()
  }
}

const CLOSE_TIMEOUT_MS = 1_000

/** Ends a connection in good order, where the other end still listens. */
export async function closeClient(client: Client): Promise<void> {
  await waitAtMost(CLOSE_TIMEOUT_MS, client.end())
}
