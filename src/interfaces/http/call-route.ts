import { contextFor } from '../../app/open-context.ts'
import type { Caller, ServerContext, Route } from '../../contracts/route.ts'
import { messageOf, StoreReadOnlyError, StoreUnavailableError } from '../../core/model/errors.ts'
import { ACCESS_STORE, type NewOperation } from '../../features/access/store/store.ts'
import { readJson } from '../../lib/http/body.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { ConcurrencyLimit } from '../../lib/http/limits.ts'
import type { Peer } from '../../lib/http/node-adapter.ts'
import { jsonResponse } from '../../lib/http/response.ts'
import { validateCall } from '../../lib/http/route.ts'
import { UnrecordedError, type Auth } from './auth.ts'
import type { ErrorLog } from './error-log.ts'
import { BODY_ERRORS, BODY_MAX_BYTES, CALL_ERRORS, tooManyRequests } from './http-error.ts'

/** What every call of a route passes through. */
export type AppContext = {
  readonly auth: Auth
  /** Fails while the database cannot be reached; the next call tries again. */
  readonly server: () => Promise<ServerContext>
  /** Returns the error as the caller gets it; internal details go to the log. */
  readonly httpErrorFor: (error: unknown, request: Request) => HttpError
  readonly errorLog: ErrorLog
  readonly readLimit: ConcurrencyLimit
  readonly log: (line: string) => void
}

/** Expensive reads per caller: two run, eight wait, the rest get 429. */
export function makeReadLimit(): ConcurrencyLimit {
  return new ConcurrencyLimit(2, 8, () => tooManyRequests(1, 'of these at once'))
}

/** A request and the parameters of its route's path. */
export type MatchedRequest = {
  readonly request: Request
  readonly peer: Peer
  readonly params: Readonly<Record<string, string>>
}

/** Authenticates, validates and handles a call. Throws the error for the caller. */
export async function callRoute(
  app: AppContext,
  route: Route,
  matched: MatchedRequest,
): Promise<Response> {
  const caller = await app.auth.identify(matched.request, matched.peer)
  if (route.method !== 'GET') return callMutation(app, route, matched, caller)
  app.auth.requireRole(caller, route.role)
  const result = await callHandler(app, route, matched, caller, undefined)
  const response = respond(route, result)
  return matched.request.method === 'HEAD' ? withoutBody(response) : response
}

/** Records every change that an authenticated caller requests, also a refused one. A preview is not recorded. */
async function callMutation(
  app: AppContext,
  route: Route,
  matched: MatchedRequest,
  caller: Caller,
): Promise<Response> {
  let body: unknown
  const record = async (status: number, result: string): Promise<void> => {
    const call = `${route.method} ${route.path.replace(/:(\w+)/g, (_, name) => matched.params[name] ?? '')}`
    try {
      const { store } = await app.server()
      const operation = toOperation(caller, call, body, { status, result })
      await (await store.extend(ACCESS_STORE)).recordOperation(operation)
    } catch (error) {
      if (error instanceof StoreUnavailableError) return
      // A read-only server may have a database login that cannot write.
      if (error instanceof StoreReadOnlyError && app.auth.readOnly) return
      app.log(`${call} by ${actorOf(caller)} could not be recorded: ${messageOf(error)}`)
    }
  }
  try {
    app.auth.checkMutation(caller)
    app.auth.requireRole(caller, route.role)
    body = await readJson(matched.request, BODY_MAX_BYTES, BODY_ERRORS)
    const result = await callHandler(app, route, matched, caller, body)
    const response = respond(route, result)
    if (!isDryRun(body)) await record(response.status, summarizeResult(result))
    return response
  } catch (error) {
    const httpError = app.httpErrorFor(error, matched.request)
    if (!(httpError instanceof UnrecordedError)) await record(httpError.status, httpError.message)
    throw httpError
  }
}

async function callHandler(
  app: AppContext,
  route: Route,
  matched: MatchedRequest,
  caller: Caller,
  json: unknown,
): Promise<unknown> {
  const { request, params } = matched
  const query = new URL(request.url).searchParams
  const input = validateCall(
    route,
    { params, query, json: json === undefined ? {} : json },
    CALL_ERRORS,
  )
  const server = await app.server()
  const { signal } = request
  const handle = async (): Promise<unknown> =>
    route.handle({
      ...input,
      caller,
      server,
      context: contextFor(server.store, server.settings, actorOf(caller)),
      signal,
      lastEventId: request.headers.get('last-event-id') ?? undefined,
      isAllowed: () => app.auth.isStillAllowed(matched, caller, route.role),
    })
  const { isExpensive = false } = route
  const isLimited = typeof isExpensive === 'function' ? isExpensive(input.query) : isExpensive
  return isLimited ? app.readLimit.run(callerKey(caller), [signal], handle) : handle()
}

/** A caller with many expensive reads delays only itself. */
export function callerKey({ name, by, address }: Caller): string {
  return JSON.stringify([name, by === 'local' ? null : address])
}

function respond(route: Route, result: unknown): Response {
  return result instanceof Response ? result : jsonResponse(result, route.status ?? 200)
}

/** Drops the body, and ends the stream behind it. */
function withoutBody(response: Response): Response {
  void response.body?.cancel().catch(() => {})
  return new Response(null, { status: response.status, headers: response.headers })
}

/** Returns the caller as the audit trail names it. */
function actorOf({ name, role, address }: Caller): string {
  return `${name} (${role}) via http${address === null ? '' : ` from ${address}`}`
}

/** Returns the record of a requested change and its outcome. */
function toOperation(
  caller: Caller,
  call: string,
  body: unknown,
  outcome: { readonly status: number; readonly result: string },
): NewOperation {
  const plan = (body as { plan?: unknown } | null | undefined)?.plan
  return {
    actor: actorOf(caller),
    address: caller.address,
    call,
    selection: body ?? null,
    plan: typeof plan === 'string' ? plan : null,
    ...outcome,
  }
}

/** A preview is not recorded. */
function isDryRun(body: unknown): boolean {
  return (body as { dryRun?: unknown } | null | undefined)?.dryRun === true
}

type Sections = { sections: readonly { readonly sentences: readonly string[] }[] }

/** Returns the result in sentences. */
function summarizeResult(result: unknown): string {
  if (result instanceof HttpError) return result.message
  if (typeof result !== 'object' || result === null) return 'Done.'
  const { summary, sections, ...rest } = result as Record<string, unknown> & Partial<Sections>
  if (typeof summary === 'string') return summary
  if (sections) return sections.flatMap(({ sentences }) => sentences).join(' ')
  const counts = Object.entries(rest).flatMap(([name, value]) => {
    if (typeof value === 'number') return [`${name}: ${value}`]
    return Array.isArray(value) ? [`${name}: ${value.length}`] : []
  })
  return counts.length > 0 ? `Done. ${counts.join(', ')}.` : 'Done.'
}
