import type { Access, Handler, HandlerOptions } from './http.ts'
import { messageOf } from './core/model/errors.ts'
import { normalizeBasePath, requireAccessOption } from './interfaces/http/mount-options.ts'
import type { BackgroundRecoveryOptions } from './app/background-recovery.ts'

// In what Next.js builds for the edge `next-edge.ts` stands in its place.

export type { Access, Role, User } from './http.ts'
export type { BackgroundRecoveryOptions as RegisterOptions } from './app/background-recovery.ts'

/** Options of `unstuckRoutes` and `recoveryRoutes`. `access`, `tokens` or both are required. */
export type RouteOptions = Omit<HandlerOptions, 'unstuck'>

/** Handlers by method, for the exports of a route file. */
export type Routes = Handler['routes']

/**
 * For `instrumentation.ts`: `export { register } from 'unstuck/next'`. Recovers what is dead when the server starts, and
 * then looks after workers, runs and tables of your own for as long as it lives. Returns at once, never throws, starts once
 * however often it is called; in the edge runtime and while the app is built it does nothing.
 */
export function register(options: BackgroundRecoveryOptions = {}): void {
  if (process.env.NEXT_RUNTIME === 'edge') return
  if (process.env.NEXT_PHASE === 'phase-production-build') return
  const { db = 'the database of the config' } = options
  if (state.registered !== null) {
    if (state.registered !== db)
      logLine(options, 'register() was called again with another database: the first one applies.')
    return
  }
  state.registered = db
  void import('./app/background-recovery.ts')
    .then(({ startBackgroundRecovery }) => startBackgroundRecovery(options))
    .catch((error: unknown) => {
      logLine(options, `register() could not begin: ${messageOf(error)}`)
    })
}

/**
 * The dashboard and the API, for `app/unstuck/[[...path]]/route.ts`:
 * `export const { GET, HEAD, POST, DELETE } = unstuckRoutes({ basePath: '/unstuck', access })`.
 */
export function unstuckRoutes(options: RouteOptions): Routes {
  requireAccessOption('unstuckRoutes', options)
  normalizeBasePath(options.basePath ?? '')
  const route = (request: Request): Promise<Response> => handleRequest(options, request)
  return { GET: route, HEAD: route, POST: route, DELETE: route }
}

/** What recovery would do, and doing it, and no other call: for `app/api/recovery/route.ts`, or any other path. */
export function recoveryRoutes(
  options: Omit<RouteOptions, 'basePath'>,
): Pick<Routes, 'GET' | 'POST'> {
  requireAccessOption('recoveryRoutes', options)
  const route = (request: Request): Promise<Response> => {
    const { search, origin } = new URL(request.url)
    return handleRequest(options, new Request(`${origin}/api/recovery${search}`, request), request)
  }
  return { GET: route, POST: route }
}

/** Kept on `globalThis`: a development server loads the module again after each change. */
type SharedState = {
  /** For which database; null before. */
  registered: string | null
  /** By their options: each holds a database open. */
  readonly handlers: Map<string, Promise<Handler>>
  /** The `access` function of the route that got the request. */
  readonly access: WeakMap<Request, Access>
}
const STATE_KEY = Symbol.for('unstuck.next')
const state = ((globalThis as { [STATE_KEY]?: SharedState })[STATE_KEY] ??= {
  registered: null,
  handlers: new Map(),
  access: new WeakMap(),
})

/** Not the address itself: it may hold a password. */
function logLine({ log }: BackgroundRecoveryOptions, line: string): void {
  if (log) void log(line)
  else process.stderr.write(`[unstuck] ${line}\n`)
}

/** `original`: the request with what Next.js added to it, for `access`. */
async function handleRequest(
  options: RouteOptions,
  request: Request,
  original = request,
): Promise<Response> {
  const { access, log: _, ...rest } = options
  if (access) state.access.set(request, () => access(original))
  const key = JSON.stringify([access !== undefined, rest], (_, value: unknown) =>
    typeof value === 'function' ? String(value) : value,
  )
  let handler = state.handlers.get(key)
  if (!handler) {
    handler = import('./http.ts').then(({ createHandler }) =>
      createHandler({
        ...options,
        ...(access && { access: (asked) => state.access.get(asked)?.(asked) }),
      }),
    )
    state.handlers.set(key, handler)
  }
  return (await handler).routes.GET(request)
}
