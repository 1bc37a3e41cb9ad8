import { messageOf, UnstuckError } from '../model/errors.ts'
import type { UnstuckEvent } from '../model/event.ts'
import type { ClaimId } from '../model/id.ts'
import type { WorkerStats } from '../model/latency.ts'
import type { Presence } from '../model/worker.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { Caretaker, type CaretakerOptions } from './service.ts'
import { REAL_CLOCK } from '../host/clock.ts'

/** What those who work tell the caretaker, which lives on another thread or in another process. */
export type ToCaretaker =
  | { readonly type: 'claims'; readonly held: ClaimId[]; readonly asked: ClaimId[] }
  /** What the worker has measured, all of it. */
  | { readonly type: 'stats'; readonly stats: WorkerStats }
  | { readonly type: 'stop' }

/** Errors lose their class on the way; code and exit code are what the other side needs. */
export type SentError = {
  readonly code: string
  readonly exitCode: number
  readonly message: string
}

export type FromCaretaker =
  | { readonly type: 'started'; readonly presence: Presence }
  | {
      readonly type: 'beat'
      readonly lost: ClaimId[]
      readonly cancelled: ClaimId[]
      readonly tooOld: boolean
    }
  | { readonly type: 'event'; readonly event: UnstuckEvent }
  | { readonly type: 'recovered' }
  | { readonly type: 'fatal'; readonly error: SentError }
  | { readonly type: 'stopped' }

export type ServiceOptions = {
  readonly db: string
  readonly caretaker: CaretakerOptions
  readonly loopLagMs: () => number
  readonly tell: (message: FromCaretaker) => void
}

export type CaretakerService = {
  readonly store: Store
  /** Answers false when it cannot, having said why. */
  start(): Promise<boolean>
  hear(message: ToCaretaker): void
  /** It lets go of its presence; claims that are still held are left for others to recover. */
  stop(): Promise<void>
}

/** Opens the store for a caretaker that is spoken to by messages. Answers null when it cannot, having said why. */
export async function serveCaretaker(options: ServiceOptions): Promise<CaretakerService | null> {
  const { tell } = options
  const fatal = (error: unknown): void => tell({ type: 'fatal', error: toSend(error) })
  const { worker } = options.caretaker
  // To recover others; its own heartbeats have a connection of their own.
  const store = await openStore(options.db, { writer: worker, connections: 1 }).catch(fatal)
  if (!store) return null
  let claims: { held: ClaimId[]; asked: ClaimId[] } = { held: [], asked: [] }
  let stats: WorkerStats | undefined
  let stopped: Promise<void> | undefined
  const caretaker = new Caretaker(
    store,
    options.caretaker,
    {
      claims: () => claims,
      loopLagMs: () => options.loopLagMs(),
      takeStats: () => {
        const unsent = stats
        stats = undefined
        return unsent
      },
      emit: (event) => tell({ type: 'event', event }),
      onBeat: (beat) => tell({ type: 'beat', ...beat }),
      onRecovered: () => tell({ type: 'recovered' }),
      onFatal: fatal,
    },
    REAL_CLOCK,
  )
  const stop = (): Promise<void> =>
    (stopped ??= caretaker
      .stop()
      .then(() => store.close())
      .catch(fatal)
      .then(() => tell({ type: 'stopped' })))
  return {
    store,
    stop,
    start: () =>
      caretaker.start().then(
        (presence) => {
          tell({ type: 'started', presence })
          return true
        },
        (error: unknown) => {
          fatal(error)
          return false
        },
      ),
    hear: (message) => {
      if (message.type === 'claims') claims = message
      else if (message.type === 'stats') stats = message.stats
      else void stop()
    },
  }
}

function toSend(error: unknown): SentError {
  const { code, exitCode } =
    error instanceof UnstuckError ? error : { code: 'E_UNEXPECTED', exitCode: 1 }
  return { code, exitCode, message: messageOf(error) }
}
