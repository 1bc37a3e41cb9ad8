import { Hono, type Context } from 'hono'
import { messageOf, stackOf, StoreUnavailable } from '../../core/model/errors.ts'
import { newId } from '../../core/model/id.ts'
import { redact } from '../../core/model/redact.ts'
import { safeText } from '../../core/events/safe-text.ts'
import type { Store } from '../../core/store/store.ts'
import type { Settings } from '../../app/config.ts'
import { json, refused } from './response.ts'
import { loadAssets } from './assets.ts'
import { callRoute, type Frame } from './call-route.ts'
import { isReady, logIn, logOut } from './login.ts'
import { Gate, type GateOptions, type Peer } from './auth.ts'
import { refusalFor, unexpected, unknownPath, wrongMethod, type HttpRefusal } from './http-error.ts'
import { RefusalLog } from './error-log.ts'
import type { Ground, Route } from './route.ts'
import { secure } from '../../lib/http/security-headers.ts'
import { MemorySessions, SessionBook } from './sessions.ts'
import { ALL_ROUTES } from './route-table.ts'

export type AppOptions = {
  readonly gate: GateOptions
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

type Visitor = Context<{ Bindings: Peer }>

export function createApp(options: AppOptions): App {
  const { basePath = '', log = () => {}, routes = ALL_ROUTES } = options
  const closing = new AbortController()
  const say = (line: string): void => log(safeText(redact(line)))
  const refusals = new RefusalLog(say)
  const ground = makeGround(options, refusals, closing.signal)
  const memory = options.gate.readOnly ? new MemorySessions() : null
  const gate = new Gate(options.gate, new SessionBook(async () => memory ?? (await ground()).store))
  const frame: Frame = {
    gate,
    ground,
    refusalOf: (error, request) => refusalOf(error, request, log),
    refusals,
    log: say,
  }
  const hono = new Hono<{ Bindings: Peer }>({ getPath: ({ url }) => pathBelow(url, basePath) })
  hono.get('/healthz', () => json({ ok: true }))
  hono.get('/readyz', () => isReady(frame.ground))
  hono.use('*', async ({ req }, next) => {
    gate.checkHost(req.raw)
    await next()
  })
  hono.post('/api/login', ({ req, env }) => logIn(frame, req.raw, env))
  hono.post('/api/logout', ({ req }) => logOut(gate, req.raw))
  for (const route of routes) {
    hono.on(route.method, route.path, ({ req, env }) =>
      callRoute(frame, route, { request: req.raw, peer: env, params: req.param() }),
    )
  }
  const refuse = (refusal: HttpRefusal) => async (visitor: Visitor) => {
    await gate.identify(visitor.req.raw, visitor.env)
    throw refusal
  }
  for (const [path, methods] of methodsByPath(routes)) hono.all(path, refuse(wrongMethod(methods)))
  hono.all('/api/*', refuse(unknownPath()))
  const assets = loadAssets(basePath)
  hono.get('*', ({ req }) => assets(pathBelow(req.url, basePath), req.raw))
  hono.all('*', refuse(wrongMethod(['GET'])))
  hono.onError((error, { req, env }) => {
    const refusal = frame.refusalOf(error, req.raw)
    refusals.add(req.raw, gate.addressOf(req.raw, env), refusal)
    return refused(refusal)
  })
  return {
    async fetch(request, peer = {}) {
      const isReached = peer.hasWholePath !== true || isBelow(new URL(request.url), basePath)
      return secure(isReached ? await hono.fetch(request, peer) : refused(unknownPath()))
    },
    close: () => closing.abort(),
  }
}

/** Made once, when the database first answers. */
function makeGround(
  { gate: { readOnly }, open, settings, dataFolder }: AppOptions,
  refusals: RefusalLog,
  closing: AbortSignal,
): () => Promise<Ground> {
  let ground: Promise<Ground> | undefined
  const make = async (): Promise<Ground> => {
    try {
      const [known, store, folder] = [await settings(), await open(), await dataFolder()]
      return { settings: known, store, dataFolder: folder, readOnly, refusals, closing }
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error
      // A mistake in the config or the address is the server's own, whoever happens to call.
      throw new Error(messageOf(error), { cause: error })
    }
  }
  return () => {
    ground ??= make().catch((error: unknown) => {
      ground = undefined
      throw error
    })
    return ground
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
function refusalOf(error: unknown, request: Request, log: (line: string) => void): HttpRefusal {
  const refusal = refusalFor(error)
  if (refusal) return refusal
  const id = newId()
  if (!request.signal.aborted) {
    const { pathname } = new URL(request.url)
    log(safeText(redact(`${request.method} ${pathname} (${id}): ${stackOf(error)}`)))
  }
  return unexpected(id)
}
