import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { abortable } from '../../../core/worker/abortable.ts'
import { hasBody, readJson } from '../../../lib/http/body.ts'
import { ConcurrencyLimit } from '../../../lib/http/limits.ts'
import type { JsonRequest } from '../../../lib/http/node-adapter.ts'
import { validateCall, type Input, type Route } from '../../../lib/http/route.ts'
import type { Schema } from '../../../lib/validate/validate.ts'
import {
  BODY_ERRORS,
  CALL_ERRORS,
  methodNotAllowed,
  notFound,
  stopping,
  tooManyCalls,
} from './errors.ts'

/** A call of the API. `C` is what it acts on. */
export type SessionRoute<C, P extends Schema = Schema, B extends Schema = Schema> = Route<
  C & { readonly signal: AbortSignal },
  P,
  Schema,
  B
> & {
  readonly maxBytes: number
  /** Handled at once, also while other calls wait for the database. */
  readonly skipsQueue?: true
  /** It may wait for long. It is under way only until its body is read. */
  readonly waits?: true
}

/** What a session serves. */
export type SessionOptions<C> = {
  readonly routes: readonly SessionRoute<C>[]
  readonly context: C
  /** Calls under way at once: each may have a body in memory. */
  readonly calls: number
  /** Calls that may wait for their turn; further ones are refused. */
  readonly waiting: number
  /** Calls are handled one after the other. */
  readonly isSerial: boolean
  /** Called for every call with a valid token. */
  readonly onCall: () => void
}

/** How a command reaches its API. */
export type EndpointSession = {
  /** The base address, UNSTUCK_URL. */
  readonly url: string
  /** Valid for this session only, UNSTUCK_TOKEN. */
  readonly token: string
  /** The Unix socket to connect to instead of the URL's host. */
  readonly socket?: string
  /** Refuses calls from now on. */
  close(): void
}

/** No token has this hash, but for a chance in 2^256. */
const DUMMY_HASH = randomBytes(32)

/** The API of one command: its token, its routes, and how many calls run at once. */
export class ApiSession<C = unknown> {
  /** 256 bits. Only the command gets it; the session keeps its hash. */
  static newToken(): string {
    return randomBytes(32).toString('base64url')
  }

  /** Checks an Authorization header. Takes the same time without a session. */
  static isAuthorized(session: ApiSession | undefined, authorization: string | null): boolean {
    const token = /^Bearer +([\w-]+)$/i.exec(authorization ?? '')?.[1] ?? ''
    return timingSafeEqual(hashOf(token), session ? session.#tokenHash : DUMMY_HASH)
  }

  readonly #tokenHash: Buffer
  readonly #options: SessionOptions<C>
  readonly #calls: ConcurrencyLimit
  readonly #queue: ConcurrencyLimit
  readonly #closed = new AbortController()

  constructor(token: string, options: SessionOptions<C>) {
    const { calls, waiting, isSerial } = options
    this.#tokenHash = hashOf(token)
    this.#options = options
    this.#calls = new ConcurrencyLimit(calls, waiting, () => tooManyCalls(calls + waiting))
    this.#queue = new ConcurrencyLimit(isSerial ? 1 : Infinity, Infinity, stopping)
  }

  /** Handles an authorized call. Returns the data of the response. */
  async call(request: JsonRequest, path: string): Promise<unknown> {
    const { routes, context, onCall } = this.#options
    onCall()
    const { route, params } = findRoute(routes, request.method, path)
    const readInput = async (): Promise<Input> => {
      const json = hasBody(request)
        ? await readJson(request, route.maxBytes, BODY_ERRORS)
        : undefined
      return validateCall(route, { params, json }, CALL_ERRORS)
    }
    const { signal } = request
    const handle = async (input: Input): Promise<unknown> =>
      route.handle({ ...input, ...context, signal })
    if (route.skipsQueue) return handle(await readInput())
    const closed = this.#closed.signal
    if (route.waits) {
      const input = await this.#calls.run('', [signal, closed], readInput)
      return abortable(closed, () => handle(input))
    }
    return this.#calls.run('', [signal, closed], async () => {
      const input = await readInput()
      // A write is not given up when its caller hangs up: it is settled before the next one is tried.
      return this.#queue.run('', [signal, closed], () => abortable(closed, () => handle(input)))
    })
  }

  /** Ends waiting calls with an error. The write under way continues as long as its run lets it. */
  close(): void {
    this.#closed.abort(stopping())
  }
}

/** Returns the route of a path, with the values of its parameters. */
function findRoute<C>(
  routes: readonly SessionRoute<C>[],
  method: string,
  path: string,
): { readonly route: SessionRoute<C>; readonly params: Readonly<Record<string, string>> } {
  const found = routes.flatMap((route) => {
    const params = matchPath(route.path, path)
    return params ? [{ route, params }] : []
  })
  if (found.length === 0) throw notFound(routes.map((route) => `${route.method} ${route.path}`))
  const matched = found.find(({ route }) => route.method === method)
  if (!matched) throw methodNotAllowed(path, found[0]!.route.method)
  return matched
}

/** `/targets/:id/fail` and `/targets/7/fail`: `{ id: '7' }`; null if they differ. */
function matchPath(pattern: string, path: string): Record<string, string> | null {
  if (!pattern.includes(':')) return pattern === path ? {} : null
  const [names, parts] = [pattern.split('/'), path.split('/')]
  if (names.length !== parts.length) return null
  const params: Record<string, string> = {}
  for (const [n, name] of names.entries()) {
    if (name.startsWith(':')) params[name.slice(1)] = parts[n]!
    else if (name !== parts[n]) return null
  }
  return params
}

function hashOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
