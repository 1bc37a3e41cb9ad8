import { tooManyRequests } from './http-error.ts'
import type { Call, ServerContext } from './route.ts'

/** Of the looks that read much, so many are under way for one caller; some more wait, and what comes then is refused. */
const CONCURRENT_MAX = 2
const QUEUED_MAX = 8

type CallerQueue = { running: number; readonly queued: (() => void)[] }

/** Each server has its own. */
const QUEUES = new WeakMap<ServerContext, Map<string, CallerQueue>>()

/** For calls that read all there is of something: whoever asks for many at once waits for themselves, and nobody else does. */
export async function limitConcurrency<T>(
  { caller, server, signal }: Pick<Call<unknown, unknown, unknown>, 'caller' | 'server' | 'signal'>,
  read: () => Promise<T>,
): Promise<T> {
  const queues = QUEUES.get(server) ?? new Map<string, CallerQueue>()
  QUEUES.set(server, queues)
  const key = JSON.stringify([caller.name, caller.by === 'local' ? null : caller.address])
  const queue = queues.get(key) ?? { running: 0, queued: [] }
  queues.set(key, queue)
  if (queue.running < CONCURRENT_MAX) queue.running++
  else if (queue.queued.length >= QUEUED_MAX) throw tooManyRequests(1, 'of these at once')
  else await new Promise<void>((resolve) => queue.queued.push(resolve))
  try {
    signal.throwIfAborted()
    return await read()
  } finally {
    // Whoever is next takes the place over.
    const next = queue.queued.shift()
    if (next) next()
    else if (--queue.running === 0) queues.delete(key)
  }
}
