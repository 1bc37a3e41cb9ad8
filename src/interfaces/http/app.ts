import { Hono, type Context } from 'hono'
import { messageOf, stackOf, StoreUnavailableError } from '../../core/model/errors.ts'
import { newId } from '../../core/model/id.ts'
import { redact } from '../../core/model/redact.ts'
import { safeText } from '../../core/events/safe-text.ts'
import type { Store } from '../../core/store/store.ts'
import type { Settings } from '../../app/config.ts'
import { jsonResponse, errorResponse } from './response.ts'
import { loadAssets } from './assets.ts'
import { callRoute, type AppContext } from './call-route.ts'
import { readiness, logIn, logOut } from './login.ts'
import { Auth, type AuthOptions, type Peer } from './auth.ts'
import {
  toHttpError,
  internalError,
  unknownRoute,
  wrongMethod,
  type HttpError,
} from './http-error.ts'
import { ErrorLog } from './error-log.ts'
import type { ServerContext, Route } from './route.ts'
import { withSecurityHeaders } from '../../lib/http/security-headers.ts'
import { InMemorySessionStore, SessionManager } from './sessions.ts'
import { ALL_ROUTES } from './route-table.ts'

export type AppOptions = {
  readonly auth: AuthOptions
  /** Asked again after a failure: the database may be there by then. */
  readonly open: () => Promise<Store>
  readonly settings: () => Promise<Settings>
  readonly dataFolder: () => Promise<string>
  /** `/unstuck`, or nothing. */
  readonly basePath?: string
  /** Hears what went wrong inside, a line each. */
  readonly log?: (line: string) => void
  /** Other calls than there are, for tests. */
  readonly routes?: readonly Route<any, any, any, any>[]
}

/** Dashboard, API, streams and metrics as one function from request to response. */
export type App = {
  fetch(request: Request, peer?: Peer): Promise<Response>
  /** Streams end. What is under way is answered. */
  close(): void
}

type HonoContext = Context<{ Bindings: Peer }>

export function createApp(options: AppOptions): App {
  const { basePath = '', log = () => {}, routes = ALL_ROUTES } = options
  const closing = new AbortController()
  const logLine = (line: string): void => log(safeText(redact(line)))
  const errorLog = new ErrorLog(logLine)
  const server = makeServerContext(options, errorLog, closing.signal)
  const memory = options.auth.readOnly ? new InMemorySessionStore() : null
  const auth = new Auth(
    options.auth,
    new SessionManager(async () => memory ?? (await server()).store),
  )
  const app: AppContext = {
    auth,
    server,
    httpErrorFor: (error, request) => httpErrorFor(error, request, log),
    errorLog,
    log: logLine,
  }
  const hono = new Hono<{ Bindings: Peer }>({ getPath: ({ url }) => pathBelow(url, basePath) })
  hono.get('/healthz', () => jsonResponse({ ok: true }))
  hono.get('/readyz', () => readiness(app.server))
  hono.use('*', async ({ req }, next) => {
    auth.checkHost(req.raw)
    await next()
  })
  hono.post('/api/login', ({ req, env }) => logIn(app, req.raw, env))
  hono.post('/api/logout', ({ req }) => logOut(auth, req.raw))
  for (const route of routes) {
    hono.on(route.method, route.path, ({ req, env }) =>
      callRoute(app, route, { request: req.raw, peer: env, params: req.param() }),
    )
  }
  const reject = (httpError: HttpError) => async (hono: HonoContext) => {
    await auth.identify(hono.req.raw, hono.env)
    throw httpError
  }
  for (const [path, methods] of methodsByPath(routes)) hono.all(path, reject(wrongMethod(methods)))
  hono.all('/api/*', reject(unknownRoute()))
  const assets = loadAssets(basePath)
  hono.get('*', ({ req }) => assets(pathBelow(req.url, basePath), req.raw))
  hono.all('*', reject(wrongMethod(['GET'])))
  hono.onError((error, { req, env }) => {
    const httpError = app.httpErrorFor(error, req.raw)
    errorLog.add(req.raw, auth.addressOf(req.raw, env), httpError)
    return errorResponse(httpError)
  })
  return {
    async fetch(request, peer = {}) {
      const isBelowBase = peer.hasWholePath !== true || isBelow(new URL(request.url), basePath)
      return withSecurityHeaders(
        isBelowBase ? await hono.fetch(request, peer) : errorResponse(unknownRoute()),
      )
    },
    close: () => closing.abort(),
  }
}

/** Made once, when the database first answers. */
function makeServerContext(
  { auth: { readOnly }, open, settings, dataFolder }: AppOptions,
  errorLog: ErrorLog,
  closing: AbortSignal,
): () => Promise<ServerContext> {
  let server: Promise<ServerContext> | undefined
  const build = async (): Promise<ServerContext> => {
    try {
      const [known, store, folder] = [await settings(), await open(), await dataFolder()]
      return { settings: known, store, dataFolder: folder, readOnly, errorLog, closing }
    } catch (error) {
      if (error instanceof StoreUnavailableError) throw error
      // A mistake in the config or the address is the server's own, whoever happens to call.
      throw new Error(messageOf(error), { cause: error })
    }
  }
  return () => {
    server ??= build().catch((error: unknown) => {
      server = undefined
      throw error
    })
    return server
  }
}

function isBelow({ pathname }: URL, basePath: string): boolean {
  return pathname === basePath || pathname.startsWith(`${basePath}/`)
}

/** The path below the base path. Some servers that mount us have taken it off already. */
function pathBelow(url: string, basePath: string): string {
  const address = new URL(url)
  const { pathname } = address
  return (isBelow(address, basePath) ? pathname.slice(basePath.length) : pathname) || '/'
}

function methodsByPath(routes: readonly Route[]): Map<string, string[]> {
  const methods = new Map([
    ['/api/login', ['POST']],
    ['/api/logout', ['POST']],
  ])
  for (const { path, method } of routes) methods.set(path, [...(methods.get(path) ?? []), method])
  return methods
}

/** What the caller can do nothing about is written down under an id, and they get the id alone. */
function httpErrorFor(error: unknown, request: Request, log: (line: string) => void): HttpError {
  const httpError = toHttpError(error)
  if (httpError) return httpError
  const id = newId()
  if (!request.signal.aborted) {
    const { pathname } = new URL(request.url)
    log(safeText(redact(`${request.method} ${pathname} (${id}): ${stackOf(error)}`)))
  }
  return internalError(id)
}
