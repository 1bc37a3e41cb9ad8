import { parentPort, workerData } from 'node:worker_threads'
import { uptimeMs } from '../host/identity.ts'
import type { HeartbeatOptions } from './service.ts'
import { openHeartbeatEndpoint, type ToService } from './endpoint.ts'

export type ThreadData = {
  readonly db: string
  readonly options: HeartbeatOptions
  /** The main thread writes its clock here; how old it is shows how long it has been busy. */
  readonly clockBuffer: SharedArrayBuffer
}

const port = parentPort!
const { db, options, clockBuffer } = workerData as ThreadData
const mainClock = new Int32Array(clockBuffer)

// What is said before the store is open waits in the port until somebody listens.
const service = await openHeartbeatEndpoint({
  db,
  heartbeat: options,
  loopLagMs: () => Math.max(0, (uptimeMs() | 0) - Atomics.load(mainClock, 0)),
  post: (message) => {
    port.postMessage(message)
    if (message.type === 'stopped') port.close()
  },
})
if (service) port.on('message', (message: ToService) => service.receive(message))
if (!(await service?.start())) port.close()
