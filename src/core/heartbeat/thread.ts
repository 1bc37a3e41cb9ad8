import { parentPort, workerData } from 'node:worker_threads'
import { uptimeMs } from '../host/identity.ts'
import { openHeartbeatService } from './service.ts'
import type { HeartbeatOptions, ToService } from './transport.ts'

export type ThreadData = {
  readonly db: string
  readonly options: HeartbeatOptions
  /** Holds the clock of the main thread. */
  readonly clockBuffer: SharedArrayBuffer
}

const port = parentPort!
const { db, options, clockBuffer } = workerData as ThreadData
const mainClock = new Int32Array(clockBuffer)

// Messages that arrive before the store is open wait in the port.
const service = await openHeartbeatService(db, options, {
  loopLagMs: () => Math.max(0, (uptimeMs() | 0) - Atomics.load(mainClock, 0)),
  post: (message) => {
    port.postMessage(message)
    if (message.type === 'stopped') port.close()
  },
})
if (service) port.on('message', (message: ToService) => service.receive(message))
if (!(await service?.start())) port.close()
