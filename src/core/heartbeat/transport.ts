import { Worker as Thread } from 'node:worker_threads'
import { uptimeMs } from '../host/identity.ts'
import type { HeartbeatOptions } from './service.ts'
import type { ThreadData } from './thread.ts'
import type { HeartbeatTransport } from './client.ts'

const CLOCK_EVERY_MS = 100

/** On a thread of this process. The main thread leaves its clock where the other sees how old it is. */
export function threadTransport(db: string, options: HeartbeatOptions): HeartbeatTransport {
  const clockBuffer = new SharedArrayBuffer(4)
  const writeClock = (): void => {
    Atomics.store(new Int32Array(clockBuffer), 0, uptimeMs() | 0)
  }
  writeClock()
  const timer = setInterval(writeClock, CLOCK_EVERY_MS)
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const thread = new Thread(new URL(`./thread.${extension}`, import.meta.url), {
    workerData: { db, options, clockBuffer } satisfies ThreadData,
    name: 'unstuck-caretaker',
  })
  let failure: Error | null = null
  return {
    post: (message) => thread.postMessage(message),
    listen: (onMessage, onEnd) => {
      thread.on('message', onMessage)
      thread.on('error', (error: Error) => (failure = error))
      thread.on('exit', () => {
        clearInterval(timer)
        onEnd(failure)
      })
    },
    ref: () => thread.ref(),
    unref: () => {
      thread.unref()
      timer.unref()
    },
  }
}
