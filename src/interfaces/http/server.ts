import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { messageOf, UsageError } from '../../core/model/errors.ts'
import { Connections } from '../../lib/http/connections.ts'
import type { App } from './app.ts'
import { handleNodeRequest } from './node-adapter.ts'

export type ServerOptions = {
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
  /** For tests, which cannot wait that long. */
  readonly limits?: Partial<typeof LIMITS>
}

const LIMITS = { headersMs: 10_000, bodyMs: 30_000, connections: 1_000 }
const HEADERS_MAX = 16 * 1_024
const KEEP_ALIVE_MS = 75_000
/** How long calls under way have when it stops. */
const DRAIN_MS = 5_000

/** The app on a port of its own. */
export class HttpServer {
  readonly #app: App
  readonly #options: ServerOptions
  readonly #server: Server
  readonly #connections: Connections
  /** Those with a call under way. */
  readonly #busy = new Set<Socket>()
  #started: Promise<string> | null = null
  #stopped: Promise<void> | null = null

  constructor(app: App, options: ServerOptions) {
    this.#app = app
    this.#options = options
    const { headersMs, bodyMs, connections } = { ...LIMITS, ...options.limits }
    this.#connections = new Connections(connections)
    const settings = {
      maxHeaderSize: HEADERS_MAX,
      headersTimeout: headersMs,
      requestTimeout: bodyMs,
      connectionsCheckingInterval: Math.min(1_000, headersMs),
      keepAliveTimeout: KEEP_ALIVE_MS,
      // A request without it is refused by the gate, in JSON as everything else.
      requireHostHeader: false,
    }
    this.#server = createServer(settings, (request, response) => this.#serve(request, response))
      .on('clientError', rejectSocket)
      .on('connection', (socket) => this.#connections.add(socket))
  }

  /** Resolves with its address when calls can come in. */
  start(): Promise<string> {
    this.#started ??= this.#listen()
    return this.#started
  }

  /** Streams end, calls under way are answered, then every connection is closed. */
  stop(): Promise<void> {
    this.#stopped ??= this.#close()
    return this.#stopped
  }

  async #listen(): Promise<string> {
    const { host, port } = this.#options
    try {
      this.#server.listen(port, host)
      await once(this.#server, 'listening')
    } catch (error) {
      throw new UsageError(listenErrorMessage(error as NodeJS.ErrnoException, host, port), {
        cause: error,
      })
    }
    const { port: taken } = this.#server.address() as AddressInfo
    return `http://${isIP(host) === 6 ? `[${host}]` : host}:${taken}`
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    // Two names in one request are a trick, and which of them counts is a matter of taste.
    if ((request.headersDistinct['host'] ?? []).length > 1) {
      rejectSocket(new Error('several hosts'), request.socket)
      return
    }
    this.#busy.add(request.socket)
    response.once('close', () => {
      this.#busy.delete(request.socket)
      if (this.#stopped) request.socket.destroySoon()
    })
    const trust = (): void => this.#connections.trust(request.socket)
    handleNodeRequest((web, peer) => this.#app.fetch(web, peer), request, response, {
      trust,
    }).catch(() => response.destroy())
  }

  async #close(): Promise<void> {
    this.#app.close()
    // A start that failed has been told to whoever started it.
    await this.#started?.catch(() => {})
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#connections.dropExcept(this.#busy)
    const end = setTimeout(() => this.#server.closeAllConnections(), DRAIN_MS)
    await closed
    clearTimeout(end)
  }
}

function listenErrorMessage(error: NodeJS.ErrnoException, host: string, port: number): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `Port ${port} of ${host} is taken, perhaps by another \`unstuck serve\`. End it, or choose another one with --port.`
    case 'EACCES':
      return `This user may not listen on port ${port}. Choose one from 1024 on with --port.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is not an address of this machine. Give one of its own with --host, or 0.0.0.0 for all of them.`
    default:
      return `The server cannot listen on ${host}, port ${port}: ${messageOf(error)}.`
  }
}

const MALFORMED: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** What came in was no request, or came too slowly. */
function rejectSocket(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const status = MALFORMED[error.code ?? ''] ?? '400 Bad Request'
  const body = JSON.stringify({
    error: { code: 'BAD_REQUEST', message: `This request cannot be read: ${status.slice(4)}.` },
  })
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n` +
      `x-content-type-options: nosniff\r\ncache-control: no-store\r\nconnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  )
}
