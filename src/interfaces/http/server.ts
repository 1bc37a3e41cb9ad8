import { once } from 'node:events'
import { isIP, type AddressInfo } from 'node:net'
import { messageOf, UsageError } from '../../core/model/errors.ts'
import { handleNodeRequest, type Fetch } from '../../lib/http/node-adapter.ts'
import { NodeServer, type ServerLimits } from '../../lib/http/node-server.ts'
import { errorResponse } from '../../lib/http/response.ts'
import type { App } from './app.ts'
import { malformedRequest, severalHosts } from './http-error.ts'

export type ServerOptions = {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Shorter limits, for tests. */
  readonly limits?: Partial<ServerLimits>
}

const LIMITS: ServerLimits = { headersMs: 10_000, bodyMs: 30_000, connections: 1_000 }
/** How long calls under way may take when the server stops. */
const DRAIN_MS = 5_000

/** The app on a port of its own. */
export class HttpServer {
  readonly #app: App
  readonly #options: ServerOptions
  readonly #server: NodeServer
  #started: Promise<string> | null = null
  #stopped: Promise<void> | null = null

  constructor(app: App, options: ServerOptions) {
    this.#app = app
    this.#options = options
    const fetch: Fetch = async (request, peer) =>
      // No client sends two Host headers by mistake.
      request.headers.get('host')?.includes(',') === true
        ? errorResponse(severalHosts())
        : app.fetch(request, peer)
    this.#server = new NodeServer(
      (incoming, outgoing, trust) => handleNodeRequest(fetch, incoming, outgoing, { trust }),
      {
        limits: { ...LIMITS, ...options.limits },
        drainMs: DRAIN_MS,
        malformed: malformedRequest,
      },
    )
  }

  /** Returns the server's address, once it accepts calls. */
  start(): Promise<string> {
    this.#started ??= this.#listen()
    return this.#started
  }

  /** Ends streams, finishes calls under way, then closes every connection. */
  stop(): Promise<void> {
    this.#stopped ??= this.#close()
    return this.#stopped
  }

  async #listen(): Promise<string> {
    const { host, port } = this.#options
    const { server } = this.#server
    try {
      server.listen(port, host)
      await once(server, 'listening')
    } catch (error) {
      throw new UsageError(listenErrorMessage(error as NodeJS.ErrnoException, host, port), {
        cause: error,
      })
    }
    const { port: taken } = server.address() as AddressInfo
    return `http://${isIP(host) === 6 ? `[${host}]` : host}:${taken}`
  }

  async #close(): Promise<void> {
    this.#app.close()
    // `start` has already rejected with this error.
    await this.#started?.catch(() => {})
    await this.#server.stop()
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
