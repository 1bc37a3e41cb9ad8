import { parentPort, workerData } from 'node:worker_threads'
import { uptimeMs } from '../host/identity.ts'
import type { CaretakerOptions } from './service.ts'
import { serveCaretaker, type ToCaretaker } from './message-service.ts'

export type ThreadData = {
  readonly db: string
  readonly options: CaretakerOptions
  /** The main thread writes its clock here; how old it is shows how long it has been busy. */
  readonly pulse: SharedArrayBuffer
}

const port = parentPort!
const { db, options, pulse } = workerData as ThreadData
const mainClock = new Int32Array(pulse)

// What is said before the store is open waits in the port until somebody listens.
const service = await serveCaretaker({
  db,
  caretaker: options,
  loopLagMs: () => Math.max(0, (uptimeMs() | 0) - Atomics.load(mainClock, 0)),
  tell: (message) => {
    port.postMessage(message)
    if (message.type === 'stopped') port.close()
  },
})
if (service) port.on('message', (message: ToCaretaker) => service.hear(message))
if (!(await service?.start())) port.close()
