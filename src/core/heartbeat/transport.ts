import { Worker as Thread } from 'node:worker_threads'
import { uptimeMs } from '../host/identity.ts'
import type { CaretakerOptions } from './service.ts'
import type { ThreadData } from './thread.ts'
import type { CaretakerSeat } from './client.ts'

const PULSE_EVERY_MS = 100

/** On a thread of this process. The main thread leaves its clock where the other sees how old it is. */
export function threadSeat(db: string, options: CaretakerOptions): CaretakerSeat {
  const pulse = new SharedArrayBuffer(4)
  const beatPulse = (): void => {
    Atomics.store(new Int32Array(pulse), 0, uptimeMs() | 0)
  }
  beatPulse()
  const timer = setInterval(beatPulse, PULSE_EVERY_MS)
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const thread = new Thread(new URL(`./thread.${extension}`, import.meta.url), {
    workerData: { db, options, pulse } satisfies ThreadData,
    name: 'unstuck-caretaker',
  })
  let failure: Error | null = null
  return {
    tell: (message) => thread.postMessage(message),
    listen: (heard, ended) => {
      thread.on('message', heard)
      thread.on('error', (error: Error) => (failure = error))
      thread.on('exit', () => {
        clearInterval(timer)
        ended(failure)
      })
    },
    ref: () => thread.ref(),
    unref: () => {
      thread.unref()
      timer.unref()
    },
  }
}
