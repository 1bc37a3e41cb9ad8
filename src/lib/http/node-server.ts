import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { HttpError } from './errors.ts'
import type { NodeHandler } from './node-adapter.ts'
import { errorText } from './response.ts'

export type ServerLimits = {
  readonly headersMs: number
  /** For the whole request. */
  readonly bodyMs: number
  readonly connections: number
}

type NodeServerOptions = {
  readonly limits: ServerLimits
  /** How long calls under way may take after `stop`. */
  readonly drainMs: number
  /** The error for a request that Node's parser rejects. */
  readonly malformed: (parserCode: string | undefined) => HttpError
}

const HEADERS_MAX_BYTES = 16 * 1_024
/** Longer than most pauses between two calls, so that a kept connection is rarely closed under one. */
const KEEP_ALIVE_MS = 75_000

/** An API on Node's HTTP server, with limits on time, size and connections. */
export class NodeServer {
  /** For listening on a port or a socket. */
  readonly server: Server
  readonly #handle: NodeHandler
  readonly #drainMs: number
  readonly #connections: Connections
  /** Connections with a call under way. */
  readonly #busy = new Set<Socket>()
  #isStopping = false

  constructor(handle: NodeHandler, { limits, drainMs, malformed }: NodeServerOptions) {
    this.#handle = handle
    this.#drainMs = drainMs
    this.#connections = new Connections(limits.connections)
    const settings = {
      maxHeaderSize: HEADERS_MAX_BYTES,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.bodyMs,
      connectionsCheckingInterval: Math.min(1_000, limits.headersMs),
      keepAliveTimeout: KEEP_ALIVE_MS,
      // The API refuses a request without it, with an error in JSON.
      requireHostHeader: false,
    }
    const onRequest = (request: IncomingMessage, response: ServerResponse): void =>
      this.#serve(request, response)
    this.server = createServer(settings, onRequest)
      .on('checkExpectation', onRequest)
      .on('clientError', (error: NodeJS.ErrnoException, socket) =>
        rejectSocket(socket, error, malformed),
      )
      .on('connection', (socket) => this.#connections.add(socket))
  }

  /** Closes idle connections, lets calls under way finish within the drain time, then closes all. */
  async stop(): Promise<void> {
    if (!this.server.listening) return
    this.#isStopping = true
    const closed = once(this.server, 'close')
    this.server.close()
    this.#connections.dropExcept(this.#busy)
    const end = setTimeout(() => this.server.closeAllConnections(), this.#drainMs)
    await closed
    clearTimeout(end)
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    this.#busy.add(socket)
    response.once('close', () => {
      this.#busy.delete(socket)
      if (this.#isStopping) socket.destroySoon()
    })
    const trust = (): void => this.#connections.trust(socket)
    this.#handle(request, response, trust).catch(() => response.destroy())
  }
}

/** Responds to a request that could not be parsed, or arrived too slowly. */
function rejectSocket(
  socket: Duplex,
  { code }: NodeJS.ErrnoException,
  malformed: (parserCode: string | undefined) => HttpError,
): void {
  if (!socket.writable || code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  socket.end(errorText(malformed(code)), () => socket.destroy())
}

/**
 * Limits the open connections. When the limit is reached, the oldest connection without a valid token is closed, so that
 * idle connections of other users of the machine cannot shut out authenticated callers.
 */
class Connections {
  readonly #max: number
  readonly #open = new Set<Socket>()
  /** Oldest first. */
  readonly #untrusted = new Set<Socket>()

  constructor(max: number) {
    this.#max = max
  }

  add(socket: Socket): void {
    if (this.#open.size >= this.#max) {
      const [oldest = socket] = this.#untrusted
      this.#drop(oldest)
      if (oldest === socket) return
    }
    this.#open.add(socket)
    this.#untrusted.add(socket)
    socket.once('close', () => this.#forget(socket))
  }

  /** Marks a connection as authenticated. */
  trust(socket: Socket): void {
    this.#untrusted.delete(socket)
  }

  /** Closes all connections but these. */
  dropExcept(kept: ReadonlySet<Socket>): void {
    for (const socket of this.#open) if (!kept.has(socket)) this.#drop(socket)
  }

  #drop(socket: Socket): void {
    this.#forget(socket)
    socket.destroy()
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket)
    this.#untrusted.delete(socket)
  }
}
