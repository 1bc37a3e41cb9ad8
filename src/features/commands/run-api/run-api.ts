import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { stackOf } from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import { registerSecrets, redact } from '../../../core/model/redact.ts'
import { safeText } from '../../../core/events/safe-text.ts'
import type { EndpointSession, Endpoint, RunHooks } from '../endpoint.ts'
import type { RunHandle } from '../../../core/worker/run-handle.ts'
import { Connections } from '../../../lib/http/connections.ts'
import { discardRest } from '../../../lib/http/discard-rest.ts'
import { RunSession } from './run-session.ts'
import { toHttpText, errorResponse, sendResponse, type ApiResponse } from './response.ts'
import { listenOnPort, listenOnSocket, type PrivateSocket } from './listen.ts'
import {
  badRequest,
  misdirected,
  toHttpError,
  unauthorized,
  internalError,
  type HttpError,
} from './http-error.ts'
import { hashToken, isAuthorized, newToken } from './token.ts'

export type RunApiOptions = {
  /** Listen on a Unix socket in this folder instead of a port of this machine. */
  readonly socketFolder?: string
  /** Hears what went wrong inside, a line each. */
  readonly log?: (line: string) => void
  /** For tests, which cannot wait that long. */
  readonly limits?: Partial<typeof LIMITS>
}

const LIMITS = {
  headersMs: 10_000,
  bodyMs: 60_000,
  connections: 1_000,
  /** Of one run, under way at once: each may have a body in memory. */
  calls: 16,
}
const HEADERS_MAX_BYTES = 16 * 1_024
/** Longer than most pauses between two pages, so that a kept connection is rarely closed under a call. */
const KEEP_ALIVE_MS = 75_000
const CLOSE_GRACE_MS = 200

/** The HTTP API of the commands that this process wraps: one server, a path and a token for each run. */
export class RunApi implements Endpoint {
  readonly #options: RunApiOptions
  readonly #limits: typeof LIMITS
  readonly #server: Server
  readonly #connections: Connections
  readonly #sessions = new Map<string, RunSession>()
  /** As it stands in addresses. On a Unix socket nobody looks at it. */
  #host = 'localhost'
  #socket: PrivateSocket | null = null
  #started: Promise<void> | null = null
  #stopped: Promise<void> | null = null

  constructor(options: RunApiOptions = {}) {
    this.#options = options
    this.#limits = { ...LIMITS, ...options.limits }
    const { headersMs, bodyMs, connections } = this.#limits
    this.#connections = new Connections(connections)
    const settings = {
      maxHeaderSize: HEADERS_MAX_BYTES,
      headersTimeout: headersMs,
      requestTimeout: bodyMs,
      connectionsCheckingInterval: Math.min(1_000, headersMs),
      keepAliveTimeout: KEEP_ALIVE_MS,
      // A request without it is refused here, in JSON as everything else.
      requireHostHeader: false,
    }
    const listener = (request: IncomingMessage, response: ServerResponse): void => {
      void this.#serve(request, response)
    }
    this.#server = createServer(settings, listener)
      .on('checkExpectation', listener)
      .on('clientError', onClientError)
      .on('connection', (socket) => this.#connections.add(socket))
  }

  /** Resolves when calls can come in. */
  start(): Promise<void> {
    this.#started ??= this.#listen()
    return this.#started
  }

  /** Calls under way are answered with 503, then every connection is closed. */
  stop(): Promise<void> {
    this.#stopped ??= this.#close()
    return this.#stopped
  }

  /** Opens the API for a run. A run that is admitted again has a new token, and the old one no longer counts. */
  openSession(handle: RunHandle, hooks: RunHooks): EndpointSession {
    if (!this.#server.listening)
      throw new Error('openSession() comes after start() and before stop()')
    const token = newToken()
    const forget = registerSecrets([token])
    const session = new RunSession(handle, hooks, hashToken(token), this.#limits.calls)
    this.#sessions.get(handle.id)?.close()
    this.#sessions.set(handle.id, session)
    const socket = this.#socket?.path
    return {
      url: `http://${this.#host}/${handle.id}`,
      token,
      ...(socket !== undefined && { socket }),
      close: () => {
        session.close()
        forget()
        if (this.#sessions.get(handle.id) === session) this.#sessions.delete(handle.id)
      },
    }
  }

  async #listen(): Promise<void> {
    const { socketFolder } = this.#options
    if (socketFolder !== undefined) {
      this.#socket = await listenOnSocket(this.#server, socketFolder)
      return
    }
    await listenOnPort(this.#server)
    this.#host = `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const disconnected = new AbortController()
    response.once('close', () => disconnected.abort())
    const result = await this.#respond(request, disconnected.signal)
    // Nobody is there to hear it.
    if (disconnected.signal.aborted) return
    const isRead = await discardRest(request)
    sendResponse(response, result)
    // A connection that breaks at once would take the answer with it.
    if (!isRead) setTimeout(() => request.destroy(), CLOSE_GRACE_MS).unref()
  }

  async #respond(request: IncomingMessage, disconnected: AbortSignal): Promise<ApiResponse> {
    try {
      this.#checkHost(request)
      const [, id = '', path = ''] = /^\/([^/?#]*)([^?#]*)/.exec(request.url ?? '') ?? []
      const session = this.#sessions.get(id)
      const hasToken = isAuthorized(request.headers.authorization, session?.tokenHash ?? null)
      if (!session || !hasToken) throw unauthorized()
      this.#connections.trust(request.socket)
      return { status: 200, body: await session.handle(request, path || '/', disconnected) }
    } catch (error) {
      return errorResponse(toHttpError(error) ?? this.#internalError(error, request, disconnected))
    }
  }

  /** A web page whose name was made to point here must not get through. */
  #checkHost({ headersDistinct }: IncomingMessage): void {
    if (this.#options.socketFolder !== undefined) return
    const [host, ...more] = headersDistinct['host'] ?? []
    const isLocal = host === this.#host || host === this.#host.replace('127.0.0.1', 'localhost')
    if (!isLocal || more.length > 0) throw misdirected(this.#host)
  }

  #internalError(
    error: unknown,
    { method, url }: IncomingMessage,
    disconnected: AbortSignal,
  ): HttpError {
    const id = newId()
    if (!isDisconnect(error, disconnected)) {
      const what = `run API, ${method} ${url} (${id}): ${stackOf(error)}`
      this.#options.log?.(safeText(redact(what)))
    }
    return internalError(id)
  }

  async #close(): Promise<void> {
    for (const session of this.#sessions.values()) session.close()
    this.#sessions.clear()
    // A start that failed has been told to whoever started it.
    await this.#started?.catch(() => {})
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    await Promise.race([closed, sleep(CLOSE_GRACE_MS, null, { ref: false })])
    this.#server.closeAllConnections()
    await closed
    this.#socket?.cleanUp()
  }
}

/** The caller was gone before its request was read, or before its turn came. */
function isDisconnect(error: unknown, disconnected: AbortSignal): boolean {
  const isCutOff = (error as NodeJS.ErrnoException | null)?.code === 'ECONNRESET'
  return isCutOff || (disconnected.aborted && error === disconnected.reason)
}

/** What came in was no request, or came too slowly. */
function onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  socket.end(toHttpText(errorResponse(badRequest(error.code))), () => socket.destroy())
}
