import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { abortable } from '../../../core/worker/abortable.ts'
import type { RunHandle } from '../../../core/worker/run-handle.ts'
import { hasBody, readJson } from '../../../lib/http/body.ts'
import { ConcurrencyLimit } from '../../../lib/http/limits.ts'
import type { JsonRequest } from '../../../lib/http/node-adapter.ts'
import { validateCall, type Input } from '../../../lib/http/route.ts'
import {
  BODY_ERRORS,
  CALL_ERRORS,
  methodNotAllowed,
  notFound,
  stopping,
  tooManyCalls,
} from './errors.ts'
import { ROUTES, type RunContext } from './routes.ts'

export type RunEnd = 'finish' | { readonly error: string; readonly retry: boolean }

/** The callbacks of a run's owner. */
export type RunHooks = {
  /** Called for every call with a valid token. */
  onCall(): void
  /** Returns true if the command should stop. */
  isStopping(): boolean
  /** Called when the command has ended its run, and this is stored. */
  onEnd(end: RunEnd): void
}

/** How a command reaches the API of its run. */
export type EndpointSession = {
  /** The base address, UNSTUCK_URL. */
  readonly url: string
  /** Valid for this run only, UNSTUCK_TOKEN. */
  readonly token: string
  /** The Unix socket to connect to instead of the URL's host. */
  readonly socket?: string
  /** Refuses calls from now on. */
  close(): void
}

const CALLS = ROUTES.map(({ method, path }) => `${method} ${path}`)
/** No token has this hash, but for a chance in 2^256. */
const DUMMY_HASH = randomBytes(32)

/** The API of one run: its token, and its calls one after the other. */
export class RunSession {
  /** 256 bits. Only the command gets it; the session keeps its hash. */
  static newToken(): string {
    return randomBytes(32).toString('base64url')
  }

  /** Checks an Authorization header. Takes the same time without a session. */
  static isAuthorized(session: RunSession | undefined, authorization: string | null): boolean {
    const token = /^Bearer +([\w-]+)$/i.exec(authorization ?? '')?.[1] ?? ''
    return timingSafeEqual(hashOf(token), session ? session.#tokenHash : DUMMY_HASH)
  }

  readonly #tokenHash: Buffer
  readonly #run: RunContext
  readonly #hooks: RunHooks
  readonly #calls: ConcurrencyLimit
  readonly #queue = new ConcurrencyLimit(1, Infinity, stopping)
  readonly #closed = new AbortController()

  constructor(handle: RunHandle, hooks: RunHooks, token: string, maxCalls: number) {
    this.#tokenHash = hashOf(token)
    this.#hooks = hooks
    this.#calls = new ConcurrencyLimit(maxCalls, 0, () => tooManyCalls(maxCalls))
    this.#run = {
      handle,
      isStopping: () => hooks.isStopping(),
      onEnd: (end) => {
        // After `close` the owner reads the state of the run itself.
        if (!this.#closed.signal.aborted) hooks.onEnd(end)
      },
      ended: null,
    }
  }

  /** Handles an authorized call. Returns the data of the response. */
  async call(request: JsonRequest, path: string): Promise<unknown> {
    this.#hooks.onCall()
    const route = ROUTES.find((one) => one.path === path)
    if (!route) throw notFound(CALLS)
    if (request.method !== route.method) throw methodNotAllowed(path, route.method)
    const readInput = async (): Promise<Input> => {
      const json = hasBody(request)
        ? await readJson(request, route.maxBytes, BODY_ERRORS)
        : undefined
      return validateCall(route, { json }, CALL_ERRORS)
    }
    const handle = async (input: Input): Promise<unknown> =>
      route.handle({ ...input, run: this.#run })
    if (route.skipsQueue) return handle(await readInput())
    return this.#calls.run('', [request.signal], async () => {
      const input = await readInput()
      const closed = this.#closed.signal
      // A write is not given up when its caller hangs up: it is settled before the next one is tried.
      return this.#queue.run('', [request.signal, closed], () =>
        abortable(closed, () => handle(input)),
      )
    })
  }

  /** Ends waiting calls with an error. The write under way continues as long as its run lets it. */
  close(): void {
    this.#closed.abort(stopping())
  }
}

function hashOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
