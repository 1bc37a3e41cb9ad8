import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  ANYTHING,
  checkOptions,
  BOOLEAN,
  FUNCTION,
  optional,
  STRING,
  type Fields,
} from './core/model/fields.ts'
import { dataFolder } from './lib/files/data-folder.ts'
import { databaseAddress } from './lib/files/config-file.ts'
import type { Unstuck } from './interfaces/library/open.ts'
import { openAll } from './app/open-database.ts'
import type { Store } from './core/store/store.ts'
import { loadSettings, type Config } from './app/config.ts'
import type { Settings } from './contracts/settings.ts'
import { createApp } from './interfaces/http/app.ts'
import { normalizeBasePath } from './interfaces/http/base-path.ts'
import type { Access } from './interfaces/http/auth.ts'
import { handleNodeRequest, type Peer } from './lib/http/node-adapter.ts'
import { TokenFile } from './app/token-file.ts'
import { requireAccessOption } from './interfaces/http/required-access.ts'

export type { Access, Visitor } from './interfaces/http/auth.ts'
export { registerMetrics } from './interfaces/http/live/metrics.ts'
export type { Role } from './core/model/role.ts'

export type HandlerOptions = {
  /** `sqlite:PATH` or `postgres://…`; else UNSTUCK_DB, else that of `unstuck.config.ts`, else the default. */
  db?: string
  /** One that is open already, instead of `db`, with the tables that it was opened with. It stays open. */
  unstuck?: Unstuck
  /** Instead of the config's. */
  preset?: Config['preset']
  /** Tables of your own, beside those of the config. */
  adopted?: Config['adopted']
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

const OPTIONS: Fields = {
  db: optional(STRING),
  unstuck: optional(ANYTHING),
  preset: optional(ANYTHING),
  adopted: optional(ANYTHING),
  basePath: optional(STRING),
  access: optional(FUNCTION),
  tokens: optional(STRING),
  readOnly: optional(BOOLEAN),
  trustProxy: optional(BOOLEAN),
  log: optional(FUNCTION),
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
  const { access, tokens, readOnly = false, trustProxy = false, log = logToStderr } = options
  requireAccessOption('createHandler', options)
  checkOptions('createHandler()', options, OPTIONS)
  const logLine = (line: string): void => void log(line)
  const basePath = normalizeBasePath(options.basePath ?? '')
  const settings = lazySettings(options)
  const store = lazyStore(options, settings, logLine)
  const app = createApp({
    auth: {
      tokens: tokens === undefined ? null : new TokenFile(tokens, undefined, logLine),
      access,
      isPrivate: false,
      isKnownHost: null,
      trustProxy,
      readOnly,
      path: basePath || '/',
    },
    open: store.open,
    settings,
    dataFolder: store.folder,
    basePath,
    log: logLine,
  })
  const fetch = (request: Request, env?: unknown): Promise<Response> =>
    app.fetch(request, peerOf(env))
  const route: Route = (request) => app.fetch(request, { hasWholePath: true })
  return {
    fetch,
    routes: { GET: route, HEAD: route, POST: route, DELETE: route },
    async close() {
      app.close()
      await store.close()
    },
  }
}

/** What Express and Node's own server hand over, and what Fastify does. */
type NodeRequest = IncomingMessage | { readonly raw: IncomingMessage; readonly body?: unknown }
type NodeResponse = ServerResponse | { readonly raw: ServerResponse; hijack(): unknown }

type NodeHandler = (request: NodeRequest, response: NodeResponse) => Promise<void>

/** The handler for Express (`app.use('/unstuck', toNodeHandler(handler))`) and `node:http`. */
export function toNodeHandler(handler: Pick<Handler, 'fetch'>): NodeHandler {
  return async (request, response) => {
    if ('hijack' in response) response.hijack()
    const incoming = 'raw' in request ? request.raw : request
    const outgoing = 'raw' in response ? response.raw : response
    const { originalUrl } = incoming as { originalUrl?: string }
    const { body } = request as { body?: unknown }
    await handleNodeRequest((web, peer) => handler.fetch(web, peer), incoming, outgoing, {
      // Express takes off the path at which it has mounted us.
      ...(originalUrl !== undefined && { url: originalUrl }),
      // Somebody before us has read the body.
      ...(incoming.readableDidRead && { body: body ?? {} }),
    })
  }
}

/** What a plugin needs of Fastify, whatever its version. */
type FastifyLike = {
  all(path: string, handler: NodeHandler): unknown
  addHook(name: 'onClose', hook: () => Promise<void>): unknown
}

/** The handler for Fastify: `app.register(toFastifyPlugin(handler), { prefix: '/unstuck' })`. It closes with the app. */
export function toFastifyPlugin(
  handler: Pick<Handler, 'fetch' | 'close'>,
): (app: FastifyLike) => Promise<void> {
  const nodeHandler = toNodeHandler(handler)
  return async (app) => {
    for (const path of ['', '/*']) app.all(path, nodeHandler)
    app.addHook('onClose', () => handler.close())
  }
}

/** `unstuck.config.ts` of the folder that the server was started in; read again only after a mistake in it. */
function lazySettings({ preset, adopted }: HandlerOptions): () => Promise<Settings> {
  let loaded: Promise<Settings> | undefined
  return () => {
    loaded ??= loadSettings(process.cwd(), { preset, adopted }).catch((error: unknown) => {
      loaded = undefined
      throw error
    })
    return loaded
  }
}

type LazyStore = {
  readonly open: () => Promise<Store>
  readonly close: () => Promise<void>
  readonly folder: () => Promise<string>
}

function lazyStore(
  { db, unstuck, readOnly = false }: HandlerOptions,
  settings: () => Promise<Settings>,
  log: (line: string) => void,
): LazyStore {
  if (unstuck) {
    const { store } = unstuck
    const address = store.engine === 'sqlite' ? `sqlite:${store.location}` : store.location
    const folder = dataFolder(address, process.cwd())
    return { open: async () => store, close: async () => {}, folder: async () => folder }
  }
  const resolveAddress = async (): Promise<string> => databaseAddress(db, await settings())
  const open = async (): Promise<Store> => {
    const address = await resolveAddress()
    return openAll({ settings: await settings(), address, log }, { readOnly })
  }
  let store: Promise<Store> | undefined
  return {
    folder: async () => dataFolder(await resolveAddress(), process.cwd()),
    open: () => (store = open()),
    close: async () => (await store?.catch(() => null))?.close(),
  }
}

/** Hono on Node tells of the connection in its environment; our own adapter says it itself. */
function peerOf(env: unknown): Peer {
  const {
    address,
    incoming,
    path,
    hasWholePath = false,
  } = (env ?? {}) as Peer & {
    incoming?: IncomingMessage
  }
  return {
    address: address ?? incoming?.socket?.remoteAddress ?? null,
    hasWholePath,
    ...(path !== undefined && { path }),
  }
}

function logToStderr(line: string): void {
  process.stderr.write(`[unstuck] ${line}\n`)
}
