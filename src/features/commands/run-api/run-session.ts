import type { IncomingMessage } from 'node:http'
import { abortable } from '../../../core/worker/abortable.ts'
import type { RunHandle } from '../../../core/worker/run-handle.ts'
import type { RunHooks } from '../endpoint.ts'
import { ROUTES, type CallContext } from './routes.ts'
import { readJson } from './json-body.ts'
import { Mutex } from './mutex.ts'
import { stopping, tooManyCalls, notFound, methodNotAllowed } from './http-error.ts'

const PATHS = [...ROUTES].map(([path, { method }]) => `${method} ${path}`)

/** One run's part of the API: its token, and its calls one after the other. */
export class RunSession {
  readonly tokenHash: Buffer
  readonly #context: CallContext
  readonly #hooks: RunHooks
  readonly #maxCalls: number
  readonly #mutex = new Mutex()
  readonly #closed = new AbortController()
  #pendingCalls = 0

  constructor(handle: RunHandle, hooks: RunHooks, tokenHash: Buffer, maxCalls: number) {
    this.tokenHash = tokenHash
    this.#hooks = hooks
    this.#maxCalls = maxCalls
    this.#context = {
      handle,
      isStopping: () => hooks.isStopping(),
      onEnd: (end) => {
        // Whoever dismissed it looks at the run itself.
        if (!this.#closed.signal.aborted) hooks.onEnd(end)
      },
      ended: null,
    }
  }

  /** `left` fires when the caller hangs up. */
  async handle(
    request: IncomingMessage,
    path: string,
    disconnected: AbortSignal,
  ): Promise<unknown> {
    this.#hooks.onCall()
    const route = ROUTES.get(path)
    if (!route) throw notFound(PATHS)
    if (request.method !== route.method) throw methodNotAllowed(path, route.method)
    if (route.skipsQueue) {
      return route.handle(this.#context, route.read(await readJson(request, route.maxBytes)))
    }
    if (this.#pendingCalls >= this.#maxCalls) throw tooManyCalls(this.#maxCalls)
    this.#pendingCalls++
    try {
      const body = route.read(await readJson(request, route.maxBytes))
      const closed = this.#closed.signal
      // A write in hand is not given up when its caller hangs up: it is settled before the next one is tried.
      return await this.#mutex.runExclusive(AbortSignal.any([disconnected, closed]), () =>
        abortable(closed, async () => route.handle(this.#context, body)),
      )
    } finally {
      this.#pendingCalls--
    }
  }

  /** Its calls under way end; the one in hand goes on for as long as its run lets it. */
  close(): void {
    this.#closed.abort(stopping())
  }
}
