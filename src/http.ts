import type { IncomingMessage, ServerResponse } from 'node:http'
import { UsageError } from './model/errors.ts'
import { dataFolder } from './runtime/command/folder.ts'
import { databaseAddress } from './runtime/config-file.ts'
import type { Unstuck } from './runtime/open.ts'
import { openStore } from './store/open.ts'
import type { Store } from './store/store.ts'
import { loadSettings } from './surfaces/config.ts'
import { createApp } from './surfaces/http/app.ts'
import { checkBasePath } from './surfaces/http/base-path.ts'
import { Gate, type Access, type Peer } from './surfaces/http/gate.ts'
import { answerNode } from './surfaces/http/node-adapter.ts'
import { TokenBook } from './surfaces/http/token-book.ts'

export type { Access, Visitor } from './surfaces/http/gate.ts'
export { registerMetrics } from './surfaces/http/live/metrics.ts'
export type { Role } from './surfaces/http/route.ts'

export type HandlerOptions = {
  /** `sqlite:PATH` or `postgres://…`; else UNSTUCK_DB, else the default. */
  db?: string
  /** One that is open already, instead of `db`. It stays open. */
  unstuck?: Unstuck
  /** Where it is mounted, as in `/unstuck`. */
  basePath?: string
  /** Who is calling, by the sessions of the server around it; null for nobody. */
  access?: Access
  /** The file that `unstuck tokens add` writes, for those who come with a token. */
  tokens?: string
  /** Only show. */
  readOnly?: boolean
  /** A proxy in front says who calls and whether it is https. */
  trustProxy?: boolean
  /** Hears what went wrong inside, a line each. */
  log?: (line: string) => unknown
}

type Route = (request: Request) => Promise<Response>

export type Handler = {
  /** From request to response, as Hono mounts it. */
  fetch(request: Request, env?: unknown): Promise<Response>
  /** For Next.js: `export const { GET, HEAD, POST, DELETE } = handler.routes`. */
  readonly routes: Readonly<Record<'GET' | 'HEAD' | 'POST' | 'DELETE', Route>>
  /** Streams end, and the database is let go. */
  close(): Promise<void>
}

/**
 * The dashboard and the API inside a server of one's own. Closed by default: somebody has to say who may call. The
 * database is opened by the first call.
 */
export function createHandler(options: HandlerOptions): Handler {
  const { access, tokens, readOnly = false, trustProxy = false, log = toStderr } = options
  if (!access && tokens === undefined) {
    throw new UsageError(
      'createHandler() needs to know who may call: give `access`, a function from the request to { name, role } or null, or `tokens`, the file that `unstuck tokens add` writes.',
    )
  }
  const say = (line: string): void => void log(line)
  const basePath = checkBasePath(options.basePath ?? '')
  const memory = memoryOf(options)
  const app = createApp({
    gate: new Gate({
      tokens: tokens === undefined ? null : new TokenBook(tokens, undefined, say),
      access,
      isPrivate: false,
      isKnownHost: null,
      trustProxy,
      readOnly,
      path: basePath || '/',
    }),
    open: memory.open,
    settings: () => loadSettings(process.cwd()),
    dataFolder: memory.folder,
    basePath,
    log: say,
  })
  const fetch = (request: Request, env?: unknown): Promise<Response> =>
    app.fetch(request, peerIn(env))
  const route: Route = (request) => fetch(request)
  return {
    fetch,
    routes: { GET: route, HEAD: route, POST: route, DELETE: route },
    async close() {
      app.close()
      await memory.close()
    },
  }
}

/** What Express and Node's own server hand over, and what Fastify does. */
type NodeRequest = IncomingMessage | { readonly raw: IncomingMessage; readonly body?: unknown }
type NodeResponse = ServerResponse | { readonly raw: ServerResponse; hijack(): unknown }

/** The handler for Express (`app.use('/unstuck', …)`), Fastify (`app.all('/unstuck/*', …)`) and `node:http`. */
export function toNodeHandler(
  handler: Pick<Handler, 'fetch'>,
): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  return async (request, response) => {
    if ('hijack' in response) response.hijack()
    const incoming = 'raw' in request ? request.raw : request
    const outgoing = 'raw' in response ? response.raw : response
    const { originalUrl } = incoming as { originalUrl?: string }
    const { body } = request as { body?: unknown }
    await answerNode((web, peer) => handler.fetch(web, peer), incoming, outgoing, {
      // Express takes off the path at which it has mounted us.
      ...(originalUrl !== undefined && { url: originalUrl }),
      // Somebody before us has read the body.
      ...(incoming.readableDidRead && { body: body ?? {} }),
    })
  }
}

type Memory = {
  readonly open: () => Promise<Store>
  readonly close: () => Promise<void>
  readonly folder: string
}

function memoryOf({ db, unstuck, readOnly = false }: HandlerOptions): Memory {
  if (unstuck) {
    const { store } = unstuck
    const address = store.engine === 'sqlite' ? `sqlite:${store.where}` : store.where
    const folder = dataFolder(address, process.cwd())
    return { open: async () => store, close: async () => {}, folder }
  }
  const address = databaseAddress(db)
  let store: Promise<Store> | undefined
  return {
    folder: dataFolder(address, process.cwd()),
    open: () => (store = openStore(address, { readOnly })),
    close: async () => (await store?.catch(() => null))?.close(),
  }
}

/** Hono on Node tells of the connection in its environment; our own adapter says it itself. */
function peerIn(env: unknown): Peer {
  const { address, incoming } = (env ?? {}) as Peer & { incoming?: IncomingMessage }
  return { address: address ?? incoming?.socket?.remoteAddress ?? null }
}

function toStderr(line: string): void {
  process.stderr.write(`[unstuck] ${line}\n`)
}
