import { messageOf, StoreReadOnlyError, StoreUnavailableError } from '../../core/model/errors.ts'
import { jsonResponse } from './response.ts'
import { UnrecordedError, type Auth, type Peer } from './auth.ts'
import { actorOf, isDryRun, toOperation, summarizeResult } from './operations.ts'
import type { ErrorLog } from './error-log.ts'
import type { HttpError } from './http-error.ts'
import type { Caller, ServerContext, Route } from './route.ts'
import { readBody, readJson, readParams, readQuery } from './validate.ts'

/** What every call of a route passes through. */
export type AppContext = {
  readonly auth: Auth
  /** Fails while the database does not answer, and is asked again. */
  readonly server: () => Promise<ServerContext>
  /** How the caller hears of an error; what they need not know goes to the log. */
  readonly httpErrorFor: (error: unknown, request: Request) => HttpError
  readonly errorLog: ErrorLog
  readonly log: (line: string) => void
}

/** A request that has found its route. */
export type MatchedRequest = {
  readonly request: Request
  readonly peer: Peer
  readonly params: Readonly<Record<string, string>>
}

/** From the gate to the answer. Throws what the caller is refused with. */
export async function callRoute(
  app: AppContext,
  route: Route,
  matched: MatchedRequest,
): Promise<Response> {
  const caller = await app.auth.identify(matched.request, matched.peer)
  if (route.method !== 'GET') return callMutation(app, route, matched, caller)
  app.auth.requireRole(caller, route.role)
  const answer = await callHandler(app, route, matched, caller, undefined)
  return matched.request.method === 'HEAD'
    ? withoutBody(respond(route, answer))
    : respond(route, answer)
}

/** Whoever is known and asks for a change leaves a row, whether they get it or not. A look at what it would do does not. */
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
      await store.recordOperation(toOperation(caller, call, body, { status, result }))
    } catch (error) {
      if (error instanceof StoreUnavailableError) return
      // A server that only shows may have a login that only reads.
      if (error instanceof StoreReadOnlyError && app.auth.readOnly) return
      app.log(`${call} by ${actorOf(caller)} could not be written down: ${messageOf(error)}`)
    }
  }
  try {
    app.auth.checkMutation(caller)
    app.auth.requireRole(caller, route.role)
    body = await readJson(matched.request)
    const answer = await callHandler(app, route, matched, caller, readBody(route.body, body))
    const response = respond(route, answer)
    if (!isDryRun(body)) await record(response.status, summarizeResult(answer))
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
  body: unknown,
): Promise<unknown> {
  const { request, params } = matched
  const input = {
    params: readParams(route, params),
    query: readQuery(route, new URL(request.url).searchParams),
    body,
  }
  const server = await app.server()
  return route.handle({
    ...input,
    caller,
    server,
    context: { store: server.store, actor: actorOf(caller), policyOf: server.settings.policyOf },
    signal: request.signal,
    lastEventId: request.headers.get('last-event-id') ?? undefined,
    isAllowed: () => app.auth.isStillAllowed(matched, caller, route.role),
  })
}

function respond(route: Route, answer: unknown): Response {
  return answer instanceof Response ? answer : jsonResponse(answer, route.status ?? 200)
}

/** A stream that nobody will read is told so. */
function withoutBody(response: Response): Response {
  void response.body?.cancel().catch(() => {})
  return new Response(null, { status: response.status, headers: response.headers })
}
