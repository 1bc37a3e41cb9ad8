import { messageOf, StoreReadOnlyError, StoreUnavailableError } from '../../core/model/errors.ts'
import { contextFor } from '../../app/open-context.ts'
import { readJson } from '../../lib/http/body.ts'
import type { HttpError } from '../../lib/http/errors.ts'
import type { Peer } from '../../lib/http/node-adapter.ts'
import { jsonResponse } from '../../lib/http/response.ts'
import { validateCall } from '../../lib/http/validate-call.ts'
import { UnrecordedError, type Auth } from './auth.ts'
import { actorOf, isDryRun, toOperation, summarizeResult } from './operations.ts'
import type { ErrorLog } from './error-log.ts'
import { BODY_ERRORS, BODY_MAX_BYTES, CALL_ERRORS } from './http-error.ts'
import type { Caller, ServerContext, Route } from '../../contracts/route.ts'
import { ACCESS_STORE } from '../../features/access/store/store.ts'

/** What every call of a route passes through. */
export type AppContext = {
  readonly auth: Auth
  /** Fails while the database cannot be reached; the next call tries again. */
  readonly server: () => Promise<ServerContext>
  /** Returns the error as the caller gets it; internal details go to the log. */
  readonly httpErrorFor: (error: unknown, request: Request) => HttpError
  readonly errorLog: ErrorLog
  readonly log: (line: string) => void
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
  return route.handle({
    ...input,
    caller,
    server,
    context: contextFor(server.store, server.settings, actorOf(caller)),
    signal: request.signal,
    lastEventId: request.headers.get('last-event-id') ?? undefined,
    isAllowed: () => app.auth.isStillAllowed(matched, caller, route.role),
  })
}

function respond(route: Route, result: unknown): Response {
  return result instanceof Response ? result : jsonResponse(result, route.status ?? 200)
}

/** Drops the body, and ends the stream behind it. */
function withoutBody(response: Response): Response {
  void response.body?.cancel().catch(() => {})
  return new Response(null, { status: response.status, headers: response.headers })
}
