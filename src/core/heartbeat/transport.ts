import { Worker as Thread } from 'node:worker_threads'
import { uptimeMs } from '../host/identity.ts'
import { VERSION } from '../host/version.ts'
import type { ErrorJson } from '../model/error-data.ts'
import type { UnstuckEvent } from '../model/event.ts'
import type { ClaimId, RunId, WorkerId } from '../model/id.ts'
import type { WorkerStats } from '../model/latency.ts'
import type { Policy } from '../model/policy.ts'
import type { PolicyOverrides } from '../model/policy-of.ts'
import type { Paused } from '../model/run.ts'
import type { Presence } from '../model/worker.ts'
import { monitorInterval } from '../recovery/monitor.ts'
import type { ThreadData } from './thread.ts'

/** What a service needs to know. Plain JSON: it goes to another thread or process. */
export type HeartbeatOptions = {
  readonly worker: WorkerId
  /** Empty for a process that works on runs of any source. */
  readonly source: string
  readonly version: string
  readonly heartbeatMs: number
  readonly leaseMs: number
  /** How often the monitor assesses all runs. */
  readonly monitorEveryMs: number
  /** Delay of the first such assessment: processes that start at the same time may not have registered yet. */
  readonly startupGraceMs: number
  /** The config's policies: the runs of others are assessed by them. */
  readonly overrides: PolicyOverrides
}

export function heartbeatOptions(
  worker: WorkerId,
  source: string,
  policy: Policy,
  overrides: PolicyOverrides,
): HeartbeatOptions {
  const { heartbeatMs, leaseMs, startupGraceMs } = policy
  const monitorEveryMs = monitorInterval(policy)
  const timing = { heartbeatMs, leaseMs, monitorEveryMs, startupGraceMs }
  return { worker, source, version: VERSION, ...timing, overrides }
}

export type ToService =
  /** Claims that are held, and those that were requested without a reply yet. Replaces the last message of this type. */
  | {
      readonly type: 'claims'
      readonly held: ClaimId[]
      readonly requested: ClaimId[]
      /** The run of the last claim; null before the first. */
      readonly run: RunId | null
    }
  /** All measurements since the process started. */
  | { readonly type: 'stats'; readonly stats: WorkerStats }
  | { readonly type: 'stop' }

export type FromService =
  | { readonly type: 'started'; readonly presence: Presence }
  /** The store accepted a heartbeat. */
  | {
      readonly type: 'heartbeat'
      /** Claims that this worker no longer holds. */
      readonly lost: ClaimId[]
      /** Claims whose run was cancelled. */
      readonly cancelled: ClaimId[]
      /** Since when the worker's source is paused; null: it is not. */
      readonly paused: Paused | null
      /** The schema is newer than this program supports. */
      readonly isOutdated: boolean
    }
  | { readonly type: 'event'; readonly event: UnstuckEvent }
  /** Targets were recovered and can be claimed. */
  | { readonly type: 'recovered' }
  /** The service cannot continue: the worker must stop. The error loses its class on the way. */
  | { readonly type: 'fatal'; readonly error: ErrorJson }
  | { readonly type: 'stopped' }

/** Connects a client to a service on another thread or in another process. */
export interface HeartbeatTransport {
  post(message: ToService): void
  /** Called once. `onEnd`: no further message will arrive. */
  listen(onMessage: (message: FromService) => void, onEnd: (error: Error | null) => void): void
  /** Keeps the program running, or lets it end, while the service runs. */
  ref(): void
  unref(): void
}

const CLOCK_EVERY_MS = 100

/** Starts a service on a thread of this process. */
export function threadTransport(db: string, options: HeartbeatOptions): HeartbeatTransport {
  // The main thread writes its clock here; the age of the value shows the service how long the event loop is blocked.
  const clockBuffer = new SharedArrayBuffer(4)
  const writeClock = (): void => {
    Atomics.store(new Int32Array(clockBuffer), 0, uptimeMs() | 0)
  }
  writeClock()
  const timer = setInterval(writeClock, CLOCK_EVERY_MS)
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const thread = new Thread(new URL(`./thread.${extension}`, import.meta.url), {
    workerData: { db, options, clockBuffer } satisfies ThreadData,
    name: 'unstuck-heartbeat',
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
