import { Hono, type Context } from 'hono'
import type { ServerContext, Route } from '../../contracts/route.ts'
import type { Settings } from '../../contracts/settings.ts'
import { safeText } from '../../lib/text/safe-text.ts'
import { messageOf, StoreUnavailableError } from '../../core/model/errors.ts'
import { redact } from '../../core/model/redact.ts'
import type { Store } from '../../core/store/store.ts'
import { ACCESS_STORE } from '../../features/access/store/store.ts'
import { FEATURES } from '../../features/index.ts'
import { logUnexpected, type HttpError } from '../../lib/http/errors.ts'
import { hasDotSegments, isForbiddenMethod, type Peer } from '../../lib/http/node-adapter.ts'
import { errorResponse, jsonResponse, withSecurityHeaders } from '../../lib/http/response.ts'
import { loadOnce } from '../../lib/load-once.ts'
import { loadAssets } from './assets.ts'
import { Auth, type AuthOptions } from './auth.ts'
import { callRoute, makeReadLimit, type AppContext } from './call-route.ts'
import { ErrorLog } from './error-log.ts'
import { toHttpError, internalError, unknownRoute, wrongMethod } from './http-error.ts'
import { LIVE_ROUTES } from './live/routes.ts'
import { DEAD_LETTER_ROUTES } from './routes/dead-letters.ts'
import { HISTORY_ROUTES } from './routes/history.ts'
import { ITEM_ROUTES } from './routes/items.ts'
import { OVERVIEW_ROUTES } from './routes/overview.ts'
import { RECOVERY_ROUTES } from './routes/recovery.ts'
import { RUN_ACTION_ROUTES } from './routes/run-actions.ts'
import { SOURCE_ACTION_ROUTES } from './routes/source-actions.ts'
import { RUN_ROUTES } from './routes/runs.ts'
import { TARGET_ROUTES } from './routes/targets.ts'
import { readiness, logIn, logOut, SESSION_ROUTES } from './session-routes.ts'
import { InMemorySessionStore, SessionManager } from './sessions.ts'

export type AppOptions = {
  readonly auth: AuthOptions
  /** Called again after a failure. */
  readonly open: () => Promise<Store>
  readonly settings: () => Promise<Settings>
  readonly dataFolder: () => Promise<string>
  /** `/unstuck`, or nothing. */
  readonly basePath?: string
  /** Receives one line per internal error. */
  readonly log?: (line: string) => void
  /** Other routes, for tests. */
  readonly routes?: readonly Route<any, any, any, any>[]
}

/** Dashboard, API, streams and metrics as one function from request to response. */
export type App = {
  fetch(request: Request, peer?: Peer): Promise<Response>
  /** Ends streams. Calls under way are finished. */
  close(): void
}

type HonoContext = Context<{ Bindings: Peer }>

export function createApp(options: AppOptions): App {
  const { basePath = '', log = () => {} } = options
  const closing = new AbortController()
  const logLine = (line: string): void => log(safeText(redact(line)))
  const errorLog = new ErrorLog(logLine)
  const server = makeServerContext(options, errorLog, closing.signal)
  const memory = options.auth.readOnly ? new InMemorySessionStore() : null
  const auth = new Auth(
    options.auth,
    new SessionManager(async () => memory ?? (await server()).store.extend(ACCESS_STORE)),
  )
  const app: AppContext = {
    auth,
    server,
    httpErrorFor: (error, request) => httpErrorFor(error, request, log),
    errorLog,
    readLimit: makeReadLimit(),
    log: logLine,
  }
  let hono: Promise<Hono<{ Bindings: Peer }>> | undefined
  const load = async () => route(app, options.routes ?? (await loadRoutes()), basePath)
  return {
    async fetch(request, peer = {}) {
      const error = routingError(request, peer, basePath)
      if (error) return withSecurityHeaders(errorResponse(error))
      hono ??= load()
      return withSecurityHeaders(await (await hono).fetch(request, peer))
    },
    close: () => closing.abort(),
  }
}

function route(
  app: AppContext,
  routes: readonly Route<any, any, any, any>[],
  basePath: string,
): Hono<{ Bindings: Peer }> {
  const { auth, errorLog } = app
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
  return hono
}

/** Returns the server's context, created when the database is first reached. */
function makeServerContext(
  { auth: { readOnly }, open, settings, dataFolder }: AppOptions,
  errorLog: ErrorLog,
  closing: AbortSignal,
): () => Promise<ServerContext> {
  return loadOnce(async () => {
    try {
      const [known, store, folder] = [await settings(), await open(), await dataFolder()]
      return { settings: known, store, dataFolder: folder, readOnly, callCounts: errorLog, closing }
    } catch (error) {
      if (error instanceof StoreUnavailableError) throw error
      // A mistake in the config or the address is not the caller's.
      throw new Error(messageOf(error), { cause: error })
    }
  })
}

/** Returns the error for a request that no route may see. */
function routingError(request: Request, peer: Peer, basePath: string): HttpError | null {
  if (isForbiddenMethod(request.method)) return wrongMethod(['GET'])
  const isBelowBase = peer.hasWholePath !== true || isBelow(new URL(request.url), basePath)
  return isBelowBase && !hasDotSegments(peer.path ?? '') ? null : unknownRoute()
}

function isBelow({ pathname }: URL, basePath: string): boolean {
  return pathname === basePath || pathname.startsWith(`${basePath}/`)
}

/** Returns the path below the base path. Some servers that mount the app have removed it already. */
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

/** Returns the error as the caller gets it. An internal error is logged under an id, and the caller gets the id. */
function httpErrorFor(error: unknown, request: Request, log: (line: string) => void): HttpError {
  const { pathname } = new URL(request.url)
  return (
    toHttpError(error) ??
    internalError(logUnexpected(error, `${request.method} ${pathname}`, request.signal, log))
  )
}

/** Returns every call that needs a role, with those of features. */
export async function loadRoutes(): Promise<readonly Route<any, any, any, any>[]> {
  const added = await Promise.all(FEATURES.flatMap(({ routes }) => (routes ? [routes()] : [])))
  return [
    ...SESSION_ROUTES,
    ...OVERVIEW_ROUTES,
    ...RUN_ROUTES,
    ...RUN_ACTION_ROUTES,
    ...SOURCE_ACTION_ROUTES,
    ...TARGET_ROUTES,
    ...RECOVERY_ROUTES,
    ...DEAD_LETTER_ROUTES,
    ...HISTORY_ROUTES,
    ...ITEM_ROUTES,
    ...LIVE_ROUTES,
    ...added.flat(),
  ]
}
