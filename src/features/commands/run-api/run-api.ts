import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { stackOf } from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import { keepSecrets, redact } from '../../../core/model/redact.ts'
import { safeText } from '../../../core/events/safe-text.ts'
import type { Admission, Endpoint, RunHooks } from '../endpoint.ts'
import type { RunHandle } from '../../../core/worker/run-handle.ts'
import { Connections } from '../../../lib/http/connections.ts'
import { discardRest } from '../../../lib/http/discard-rest.ts'
import { AdmittedRun } from './admitted-run.ts'
import { asText, refused, send, type Answer } from './response.ts'
import { listenOnPort, listenOnSocket, type OwnSocket } from './listen.ts'
import {
  malformed,
  misdirected,
  refusalFor,
  unauthorized,
  unexpected,
  type Refusal,
} from './http-error.ts'
import { hashOf, isAuthorized, newToken } from './token.ts'

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
const HEADERS_MAX = 16 * 1_024
/** Longer than most pauses between two pages, so that a kept connection is rarely closed under a call. */
const KEEP_ALIVE_MS = 75_000
const LAST_ANSWERS_MS = 200

/** The HTTP API of the commands that this process wraps: one server, a path and a token for each run. */
export class RunApi implements Endpoint {
  readonly #options: RunApiOptions
  readonly #limits: typeof LIMITS
  readonly #server: Server
  readonly #connections: Connections
  readonly #runs = new Map<string, AdmittedRun>()
  /** As it stands in addresses. On a Unix socket nobody looks at it. */
  #host = 'localhost'
  #socket: OwnSocket | null = null
  #started: Promise<void> | null = null
  #stopped: Promise<void> | null = null

  constructor(options: RunApiOptions = {}) {
    this.#options = options
    this.#limits = { ...LIMITS, ...options.limits }
    const { headersMs, bodyMs, connections } = this.#limits
    this.#connections = new Connections(connections)
    const settings = {
      maxHeaderSize: HEADERS_MAX,
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
      .on('clientError', hangUp)
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
  admit(handle: RunHandle, hooks: RunHooks): Admission {
    if (!this.#server.listening) throw new Error('admit() comes after start() and before stop()')
    const token = newToken()
    const forget = keepSecrets([token])
    const run = new AdmittedRun(handle, hooks, hashOf(token), this.#limits.calls)
    this.#runs.get(handle.id)?.dismiss()
    this.#runs.set(handle.id, run)
    const socket = this.#socket?.path
    return {
      url: `http://${this.#host}/${handle.id}`,
      token,
      ...(socket !== undefined && { socket }),
      dismiss: () => {
        run.dismiss()
        forget()
        if (this.#runs.get(handle.id) === run) this.#runs.delete(handle.id)
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
    const left = new AbortController()
    response.once('close', () => left.abort())
    const answer = await this.#answer(request, left.signal)
    // Nobody is there to hear it.
    if (left.signal.aborted) return
    const isRead = await discardRest(request)
    send(response, answer)
    // A connection that breaks at once would take the answer with it.
    if (!isRead) setTimeout(() => request.destroy(), LAST_ANSWERS_MS).unref()
  }

  async #answer(request: IncomingMessage, left: AbortSignal): Promise<Answer> {
    try {
      this.#checkHost(request)
      const [, id = '', path = ''] = /^\/([^/?#]*)([^?#]*)/.exec(request.url ?? '') ?? []
      const run = this.#runs.get(id)
      const isRight = isAuthorized(request.headers.authorization, run?.tokenHash ?? null)
      if (!run || !isRight) throw unauthorized()
      this.#connections.trust(request.socket)
      return { status: 200, body: await run.answer(request, path || '/', left) }
    } catch (error) {
      return refused(refusalFor(error) ?? this.#unexpected(error, request, left))
    }
  }

  /** A web page whose name was made to point here must not get through. */
  #checkHost({ headersDistinct }: IncomingMessage): void {
    if (this.#options.socketFolder !== undefined) return
    const [host, ...more] = headersDistinct['host'] ?? []
    const isLocal = host === this.#host || host === this.#host.replace('127.0.0.1', 'localhost')
    if (!isLocal || more.length > 0) throw misdirected(this.#host)
  }

  #unexpected(error: unknown, { method, url }: IncomingMessage, left: AbortSignal): Refusal {
    const id = newId()
    if (!isHangUp(error, left)) {
      const what = `run API, ${method} ${url} (${id}): ${stackOf(error)}`
      this.#options.log?.(safeText(redact(what)))
    }
    return unexpected(id)
  }

  async #close(): Promise<void> {
    for (const run of this.#runs.values()) run.dismiss()
    this.#runs.clear()
    // A start that failed has been told to whoever started it.
    await this.#started?.catch(() => {})
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    await Promise.race([closed, sleep(LAST_ANSWERS_MS, null, { ref: false })])
    this.#server.closeAllConnections()
    await closed
    this.#socket?.leave()
  }
}

/** The caller was gone before its request was read, or before its turn came. */
function isHangUp(error: unknown, left: AbortSignal): boolean {
  const isCutOff = (error as NodeJS.ErrnoException | null)?.code === 'ECONNRESET'
  return isCutOff || (left.aborted && error === left.reason)
}

/** What came in was no request, or came too slowly. */
function hangUp(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  socket.end(asText(refused(malformed(error.code))), () => socket.destroy())
}
