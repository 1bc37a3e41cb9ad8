import type { AddressInfo } from 'node:net'
import { registerSecrets } from '../../../core/model/redact.ts'
import { logUnexpected } from '../../../lib/http/errors.ts'
import { jsonHandler, type JsonRequest } from '../../../lib/http/node-adapter.ts'
import { NodeServer } from '../../../lib/http/node-server.ts'
import { errorReply, jsonReply, type JsonReply } from '../../../lib/http/response.ts'
import {
  internalError,
  malformedRequest,
  misdirected,
  toHttpError,
  unauthorized,
} from './errors.ts'
import { listenOnPort, listenOnSocket, type PrivateSocket } from './listen.ts'
import { ApiSession, type EndpointSession, type SessionOptions } from './session.ts'

export type RunApiOptions = {
  /** Listen on a Unix socket in this folder instead of a local port. */
  readonly socketFolder?: string
  /** How many commands call it at the same time. @default 1 */
  readonly commands?: number
  /** Receives one line per internal error. */
  readonly log?: (line: string) => void
  /** Shorter limits, for tests. */
  readonly limits?: Partial<typeof LIMITS>
}

const LIMITS = {
  headersMs: 10_000,
  bodyMs: 60_000,
  /** For each command. */
  connections: 1_000,
}
const DRAIN_MS = 200

/** The HTTP API of the commands that this process wraps: one server, with a path and a token for each command. */
export class RunApi {
  readonly #options: RunApiOptions
  readonly #limits: typeof LIMITS
  readonly #server: NodeServer
  readonly #sessions = new Map<string, ApiSession>()
  /** The host in the addresses. It is not checked on a Unix socket. */
  #host = 'localhost'
  #socket: PrivateSocket | null = null
  #started: Promise<void> | null = null
  #stopped: Promise<void> | null = null

  constructor(options: RunApiOptions = {}) {
    this.#options = options
    this.#limits = { ...LIMITS, ...options.limits }
    const handler = jsonHandler((request, path, trust) => this.#handle(request, path, trust))
    const connections = this.#limits.connections * (options.commands ?? 1)
    this.#server = new NodeServer(handler, {
      limits: { ...this.#limits, connections },
      drainMs: DRAIN_MS,
      malformed: malformedRequest,
    })
  }

  /** Resolves when the API accepts calls. */
  start(): Promise<void> {
    this.#started ??= this.#listen()
    return this.#started
  }

  /** Ends calls under way with 503, then closes every connection. */
  stop(): Promise<void> {
    this.#stopped ??= this.#close()
    return this.#stopped
  }

  /** Opens the API under an id. Opening it again creates a new token, and the old one is no longer valid. */
  open<C>(id: string, options: SessionOptions<C>): EndpointSession {
    if (!this.#server.server.listening)
      throw new Error('open() comes after start() and before stop()')
    const token = ApiSession.newToken()
    const forget = registerSecrets([token])
    const session = new ApiSession(token, options) as ApiSession
    this.#sessions.get(id)?.close()
    this.#sessions.set(id, session)
    const socket = this.#socket?.path
    return {
      url: `http://${this.#host}/${id}`,
      token,
      ...(socket !== undefined && { socket }),
      close: () => {
        session.close()
        forget()
        if (this.#sessions.get(id) === session) this.#sessions.delete(id)
      },
    }
  }

  async #listen(): Promise<void> {
    const { server } = this.#server
    const { socketFolder } = this.#options
    if (socketFolder !== undefined) {
      this.#socket = await listenOnSocket(server, socketFolder)
      return
    }
    await listenOnPort(server)
    this.#host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  async #handle(request: JsonRequest, path: string, trust: () => void): Promise<JsonReply> {
    try {
      this.#checkHost(request)
      const [, id = '', call = ''] = /^\/([^/]*)(.*)/.exec(path) ?? []
      const session = this.#sessions.get(id)
      const isAuthorized = ApiSession.isAuthorized(session, request.headers.get('authorization'))
      if (!session || !isAuthorized) throw unauthorized()
      trust()
      return jsonReply(await session.call(request, call || '/'))
    } catch (error) {
      const { log = () => {} } = this.#options
      const what = `run API, ${request.method} ${path}`
      return errorReply(
        toHttpError(error) ?? internalError(logUnexpected(error, what, request.signal, log)),
      )
    }
  }

  /** Refuses other names than the API's own, which a web page could point to this machine (DNS rebinding). */
  #checkHost({ headers }: JsonRequest): void {
    if (this.#options.socketFolder !== undefined) return
    const host = headers.get('host')
    const isLocal = host === this.#host || host === this.#host.replace('127.0.0.1', 'localhost')
    if (!isLocal) throw misdirected(this.#host)
  }

  async #close(): Promise<void> {
    for (const session of this.#sessions.values()) session.close()
    this.#sessions.clear()
    // `start` has already rejected with this error.
    await this.#started?.catch(() => {})
    await this.#server.stop()
    this.#socket?.cleanUp()
  }
}
