import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  ANYTHING,
  checkCall,
  BOOLEAN,
  FUNCTION,
  optional,
  STRING,
  type Fields,
} from './core/model/fields.ts'
import { loadOnce } from './lib/load-once.ts'
import { dataFolder } from './lib/files/data-folder.ts'
import { databaseAddress } from './lib/files/config-file.ts'
import type { Unstuck } from './interfaces/library/types.ts'
import { UnstuckClient } from './interfaces/library/unstuck.ts'
import { openAll } from './app/open-database.ts'
import type { Store } from './core/store/store.ts'
import { DATABASE_FIELDS, loadSettings, type DatabaseOptions } from './app/config.ts'
import type { Settings } from './contracts/settings.ts'
import { createApp } from './interfaces/http/app.ts'
import {
  checkLoginUrl,
  normalizeBasePath,
  requireAccessOption,
} from './interfaces/http/mount-options.ts'
import type { Access } from './interfaces/http/auth.ts'
import { handleNodeRequest, type Peer } from './lib/http/node-adapter.ts'
import { TokenFile } from './app/tokens.ts'

export type { Access, User } from './interfaces/http/auth.ts'
export type { Role } from './lib/http/role.ts'

/** Options of `createHandler`. `access`, `tokens` or both are required. */
export type HandlerOptions = DatabaseOptions & {
  /** An open Unstuck, instead of `db` and `config`. The handler does not close it. @default none */
  unstuck?: Unstuck | undefined
  /** The path that it is mounted at, as in `/unstuck`. @default '' */
  basePath?: string | undefined
  /** Returns the user of a request, by the sessions of your server; null: no user. @default `tokens` alone */
  access?: Access | undefined
  /** The login page of your server, for users that `access` rejects: a path, or an http address. @default none */
  loginUrl?: string | undefined
  /** The file that `unstuck tokens add` writes. @default `access` alone */
  tokens?: string | undefined
  /** Refuses every change. @default false */
  readOnly?: boolean | undefined
  /** Believes the headers of a proxy in front about address and scheme. @default false */
  trustProxy?: boolean | undefined
  /** Gets a line for each internal error. @default stderr */
  log?: ((line: string) => unknown) | undefined
}

const OPTIONS: Fields = {
  ...DATABASE_FIELDS,
  unstuck: optional(ANYTHING),
  basePath: optional(STRING),
  access: optional(FUNCTION),
  loginUrl: optional(STRING),
  tokens: optional(STRING),
  readOnly: optional(BOOLEAN),
  trustProxy: optional(BOOLEAN),
  log: optional(FUNCTION),
}

/** Handles one request. */
export type Route = (request: Request) => Promise<Response>

/** The dashboard and the API, from `createHandler`. */
export interface Handler extends AsyncDisposable {
  /** Handles a request, as Hono mounts it. */
  fetch(request: Request, env?: unknown): Promise<Response>
  /** For Next.js: `export const { GET, HEAD, POST, DELETE } = handler.routes`. */
  readonly routes: Readonly<Record<'GET' | 'HEAD' | 'POST' | 'DELETE', Route>>
  /** Ends live streams and closes the database, unless it was given as `unstuck`. */
  close(): Promise<void>
}

/**
 * Makes the dashboard and the API for a server of your own. Closed by default: `access` or `tokens` is required. The first
 * request opens the database.
 * @throws {UsageError} with every problem of the options.
 * @example express().use('/unstuck', toNodeHandler(createHandler({ basePath: '/unstuck', access })))
 */
export function createHandler(options: HandlerOptions): Handler {
  const {
    access,
    tokens,
    loginUrl,
    readOnly = false,
    trustProxy = false,
    log = logToStderr,
  } = options
  requireAccessOption('createHandler', options)
  checkCall('createHandler()', options, OPTIONS)
  const logLine = (line: string): void => void log(line)
  const basePath = normalizeBasePath(options.basePath ?? '')
  checkLoginUrl(loginUrl)
  const settings = lazySettings(options)
  const store = lazyStore(options, settings, logLine)
  const app = createApp({
    auth: {
      tokens: tokens === undefined ? null : new TokenFile(tokens, undefined, logLine),
      access,
      loginUrl,
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
  const close = async (): Promise<void> => {
    app.close()
    await store.close()
  }
  return {
    fetch,
    routes: { GET: route, HEAD: route, POST: route, DELETE: route },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** A request of Express, Fastify or `node:http`. */
export type NodeRequest =
  | IncomingMessage
  | {
      /** The request of `node:http`. */
      readonly raw: IncomingMessage
      /** The body, if it was read already. */
      readonly body?: unknown
    }

/** A response of Express, Fastify or `node:http`. */
export type NodeResponse =
  | ServerResponse
  | {
      /** The response of `node:http`. */
      readonly raw: ServerResponse
      /** Makes Fastify leave the response to the handler. */
      hijack(): unknown
    }

/** Handles one request of Express, Fastify or `node:http`. */
export type NodeHandler = (request: NodeRequest, response: NodeResponse) => Promise<void>

/** Makes a handler for Express (`app.use('/unstuck', toNodeHandler(handler))`) and `node:http`. */
export function toNodeHandler(handler: Pick<Handler, 'fetch'>): NodeHandler {
  return async (request, response) => {
    if ('hijack' in response) response.hijack()
    const incoming = 'raw' in request ? request.raw : request
    const outgoing = 'raw' in response ? response.raw : response
    const { originalUrl } = incoming as { originalUrl?: string }
    const { body } = request as { body?: unknown }
    await handleNodeRequest((web, peer) => handler.fetch(web, peer), incoming, outgoing, {
      // Express removes the path that the handler is mounted at.
      ...(originalUrl !== undefined && { url: originalUrl }),
      // Middleware has read the body.
      ...(incoming.readableDidRead && { body: body ?? {} }),
    })
  }
}

/** What the plugin uses of Fastify 4 and 5. */
export type FastifyLike = {
  /** Adds a route for all methods. */
  all(path: string, handler: NodeHandler): unknown
  /** Adds a hook that runs when the app closes. */
  addHook(name: 'onClose', hook: () => Promise<void>): unknown
}

/** Makes a plugin for Fastify: `app.register(toFastifyPlugin(handler), { prefix: '/unstuck' })`. It closes with the app. */
export function toFastifyPlugin(
  handler: Pick<Handler, 'fetch' | 'close'>,
): (app: FastifyLike) => Promise<void> {
  const nodeHandler = toNodeHandler(handler)
  return async (app) => {
    for (const path of ['', '/*']) app.all(path, nodeHandler)
    app.addHook('onClose', () => handler.close())
  }
}

/** Loads the settings once, and again only after an error. */
function lazySettings({ config, unstuck }: HandlerOptions): () => Promise<Settings> {
  if (unstuck) {
    const { settings } = UnstuckClient.internalsOf(unstuck)
    return async () => settings
  }
  return loadOnce(() => loadSettings(process.cwd(), config))
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
    const { store } = UnstuckClient.internalsOf(unstuck)
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

/** Returns the peer of a request: from the environment of Hono on Node, or from the adapter here. */
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
