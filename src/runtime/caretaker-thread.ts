import { parentPort, workerData } from 'node:worker_threads'
import { UnstuckError } from '../model/errors.ts'
import type { UnstuckEvent } from '../model/event.ts'
import type { ClaimId } from '../model/id.ts'
import type { Presence } from '../model/worker.ts'
import { uptimeMs } from '../store/host.ts'
import { openStore } from '../store/open.ts'
import { Caretaker, type CaretakerOptions } from './caretaker.ts'
import { REAL_CLOCK } from './clock.ts'

export type ThreadData = {
  readonly db: string
  readonly options: CaretakerOptions
  /** The main thread writes its clock here; how old it is shows how long it has been busy. */
  readonly pulse: SharedArrayBuffer
}

export type ToThread =
  | { readonly type: 'claims'; readonly held: ClaimId[]; readonly asked: ClaimId[] }
  | { readonly type: 'stop' }

/** Errors lose their class between threads; code and exit code are what the other side needs. */
export type SentError = {
  readonly code: string
  readonly exitCode: number
  readonly message: string
}

export type FromThread =
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

const port = parentPort!
const { db, options, pulse } = workerData as ThreadData
const mainClock = new Int32Array(pulse)
let claims: { held: ClaimId[]; asked: ClaimId[] } = { held: [], asked: [] }

function tell(message: FromThread): void {
  port.postMessage(message)
}

function fatal(error: unknown): void {
  const { code, exitCode } =
    error instanceof UnstuckError ? error : { code: 'E_UNEXPECTED', exitCode: 1 }
  const message = error instanceof Error ? error.message : String(error)
  tell({ type: 'fatal', error: { code, exitCode, message } })
}

try {
  const store = await openStore(db, { writer: options.worker, connections: 2 })
  const caretaker = new Caretaker(
    store,
    options,
    {
      claims: () => claims,
      loopLagMs: () => Math.max(0, (uptimeMs() | 0) - Atomics.load(mainClock, 0)),
      emit: (event) => tell({ type: 'event', event }),
      onBeat: (beat) => tell({ type: 'beat', ...beat }),
      onRecovered: () => tell({ type: 'recovered' }),
      onFatal: fatal,
    },
    REAL_CLOCK,
  )
  port.on('message', (message: ToThread) => {
    if (message.type === 'claims') {
      claims = message
      return
    }
    void caretaker
      .stop()
      .then(() => store.close())
      .catch(fatal)
      .then(() => {
        tell({ type: 'stopped' })
        port.close()
      })
  })
  tell({ type: 'started', presence: await caretaker.start() })
} catch (error) {
  fatal(error)
  port.close()
}
