import type { ErrorJson } from '../model/error-data.ts'
import { toUnstuckError } from '../model/errors.ts'
import type { UnstuckEvent } from '../model/event.ts'
import type { ClaimId } from '../model/id.ts'
import type { WorkerStats } from '../model/latency.ts'
import type { Presence } from '../model/worker.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { HeartbeatService, type HeartbeatOptions } from './service.ts'
import { REAL_CLOCK } from '../host/clock.ts'

/** What those who work tell the caretaker, which lives on another thread or in another process. */
export type ToService =
  | { readonly type: 'claims'; readonly held: ClaimId[]; readonly requested: ClaimId[] }
  /** What the worker has measured, all of it. */
  | { readonly type: 'stats'; readonly stats: WorkerStats }
  | { readonly type: 'stop' }

export type FromService =
  | { readonly type: 'started'; readonly presence: Presence }
  | {
      readonly type: 'beat'
      readonly lost: ClaimId[]
      readonly cancelled: ClaimId[]
      readonly tooOld: boolean
    }
  | { readonly type: 'event'; readonly event: UnstuckEvent }
  | { readonly type: 'recovered' }
  | { readonly type: 'fatal'; readonly error: ErrorJson }
  | { readonly type: 'stopped' }

export type EndpointOptions = {
  readonly db: string
  readonly heartbeat: HeartbeatOptions
  readonly loopLagMs: () => number
  readonly post: (message: FromService) => void
}

export type HeartbeatEndpoint = {
  readonly store: Store
  /** Answers false when it cannot, having said why. */
  start(): Promise<boolean>
  receive(message: ToService): void
  /** It lets go of its presence; claims that are still held are left for others to recover. */
  stop(): Promise<void>
}

/** Opens the store for a caretaker that is spoken to by messages. Answers null when it cannot, having said why. */
export async function openHeartbeatEndpoint(
  options: EndpointOptions,
): Promise<HeartbeatEndpoint | null> {
  const { post } = options
  const fatal = (error: unknown): void =>
    post({ type: 'fatal', error: toUnstuckError(error).toJSON() })
  const { worker } = options.heartbeat
  // To recover others; its own heartbeats have a connection of their own.
  const store = await openStore(options.db, { writer: worker, connections: 1 }).catch(fatal)
  if (!store) return null
  let claims: { held: ClaimId[]; requested: ClaimId[] } = { held: [], requested: [] }
  let stats: WorkerStats | undefined
  let stopped: Promise<void> | undefined
  const service = new HeartbeatService(
    store,
    options.heartbeat,
    {
      claims: () => claims,
      loopLagMs: () => options.loopLagMs(),
      takeStats: () => {
        const unsent = stats
        stats = undefined
        return unsent
      },
      emit: (event) => post({ type: 'event', event }),
      onHeartbeat: (beat) => post({ type: 'beat', ...beat }),
      onRecovered: () => post({ type: 'recovered' }),
      onFatal: fatal,
    },
    REAL_CLOCK,
  )
  const stop = (): Promise<void> =>
    (stopped ??= service
      .stop()
      .then(() => store.close())
      .catch(fatal)
      .then(() => post({ type: 'stopped' })))
  return {
    store,
    stop,
    start: () =>
      service.start().then(
        (presence) => {
          post({ type: 'started', presence })
          return true
        },
        (error: unknown) => {
          fatal(error)
          return false
        },
      ),
    receive: (message) => {
      if (message.type === 'claims') claims = message
      else if (message.type === 'stats') stats = message.stats
      else void stop()
    },
  }
}
