import type { IncomingMessage } from 'node:http'
import { abortable } from '../../../core/worker/abortable.ts'
import type { RunHandle } from '../../../core/worker/run-handle.ts'
import type { RunHooks } from '../endpoint.ts'
import { CALLS, type Served } from './calls.ts'
import { readJson } from './json-body.ts'
import { Line } from './mutex.ts'
import { stopping, tooManyCalls, unknownPath, wrongMethod } from './http-error.ts'

const PATHS = [...CALLS].map(([path, { method }]) => `${method} ${path}`)

/** One run's part of the API: its token, and its calls one after the other. */
export class AdmittedRun {
  readonly tokenHash: Buffer
  readonly #served: Served
  readonly #hooks: RunHooks
  readonly #callsMax: number
  readonly #line = new Line()
  readonly #dismissed = new AbortController()
  #calls = 0

  constructor(handle: RunHandle, hooks: RunHooks, tokenHash: Buffer, callsMax: number) {
    this.tokenHash = tokenHash
    this.#hooks = hooks
    this.#callsMax = callsMax
    this.#served = {
      handle,
      isStopping: () => hooks.isStopping(),
      onEnd: (end) => {
        // Whoever dismissed it looks at the run itself.
        if (!this.#dismissed.signal.aborted) hooks.onEnd(end)
      },
      ended: null,
    }
  }

  /** `left` fires when the caller hangs up. */
  async answer(request: IncomingMessage, path: string, left: AbortSignal): Promise<unknown> {
    this.#hooks.onCall()
    const call = CALLS.get(path)
    if (!call) throw unknownPath(PATHS)
    if (request.method !== call.method) throw wrongMethod(path, call.method)
    if (call.isUrgent) {
      return call.act(this.#served, call.read(await readJson(request, call.bytesMax)))
    }
    if (this.#calls >= this.#callsMax) throw tooManyCalls(this.#callsMax)
    this.#calls++
    try {
      const body = call.read(await readJson(request, call.bytesMax))
      const dismissed = this.#dismissed.signal
      // A write in hand is not given up when its caller hangs up: it is settled before the next one is tried.
      return await this.#line.take(AbortSignal.any([left, dismissed]), () =>
        abortable(dismissed, async () => call.act(this.#served, body)),
      )
    } finally {
      this.#calls--
    }
  }

  /** Its calls under way end; the one in hand goes on for as long as its run lets it. */
  dismiss(): void {
    this.#dismissed.abort(stopping())
  }
}
