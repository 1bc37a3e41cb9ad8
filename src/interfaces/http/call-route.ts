import { messageOf, StoreReadOnly, StoreUnavailable } from '../../core/model/errors.ts'
import { json } from './response.ts'
import { Unrecorded, type Gate, type Peer } from './auth.ts'
import { actorOf, isDryRun, operationOf, resultOf } from './operations.ts'
import type { RefusalLog } from './error-log.ts'
import type { HttpRefusal } from './http-error.ts'
import type { Caller, Ground, Route } from './route.ts'
import { readBody, readJson, readParams, readQuery } from './validate.ts'

/** What every call of a route passes through. */
export type Frame = {
  readonly gate: Gate
  /** Fails while the database does not answer, and is asked again. */
  readonly ground: () => Promise<Ground>
  /** How the caller hears of an error; what they need not know goes to the log. */
  readonly refusalOf: (error: unknown, request: Request) => HttpRefusal
  readonly refusals: RefusalLog
  readonly log: (line: string) => void
}

/** A request that has found its route. */
export type Visit = {
  readonly request: Request
  readonly peer: Peer
  readonly params: Readonly<Record<string, string>>
}

/** From the gate to the answer. Throws what the caller is refused with. */
export async function callRoute(frame: Frame, route: Route, visit: Visit): Promise<Response> {
  const caller = await frame.gate.identify(visit.request, visit.peer)
  if (route.method !== 'GET') return change(frame, route, visit, caller)
  frame.gate.checkRole(caller, route.role)
  const answer = await handle(frame, route, visit, caller, undefined)
  return visit.request.method === 'HEAD'
    ? withoutBody(respond(route, answer))
    : respond(route, answer)
}

/** Whoever is known and asks for a change leaves a row, whether they get it or not. A look at what it would do does not. */
async function change(frame: Frame, route: Route, visit: Visit, caller: Caller): Promise<Response> {
  let asked: unknown
  const record = async (status: number, result: string): Promise<void> => {
    const call = `${route.method} ${route.path.replace(/:(\w+)/g, (_, name) => visit.params[name] ?? '')}`
    try {
      const { store } = await frame.ground()
      await store.recordOperation(operationOf(caller, call, asked, { status, result }))
    } catch (error) {
      if (error instanceof StoreUnavailable) return
      // A server that only shows may have a login that only reads.
      if (error instanceof StoreReadOnly && frame.gate.readOnly) return
      frame.log(`${call} by ${actorOf(caller)} could not be written down: ${messageOf(error)}`)
    }
  }
  try {
    frame.gate.checkChange(caller)
    frame.gate.checkRole(caller, route.role)
    asked = await readJson(visit.request)
    const answer = await handle(frame, route, visit, caller, readBody(route.body, asked))
    const response = respond(route, answer)
    if (!isDryRun(asked)) await record(response.status, resultOf(answer))
    return response
  } catch (error) {
    const refusal = frame.refusalOf(error, visit.request)
    if (!(refusal instanceof Unrecorded)) await record(refusal.status, refusal.message)
    throw refusal
  }
}

async function handle(
  frame: Frame,
  route: Route,
  visit: Visit,
  caller: Caller,
  body: unknown,
): Promise<unknown> {
  const { request, params } = visit
  const given = {
    params: readParams(route, params),
    query: readQuery(route, new URL(request.url).searchParams),
    body,
  }
  const ground = await frame.ground()
  return route.handle({
    ...given,
    caller,
    ground,
    door: { store: ground.store, actor: actorOf(caller), policyOf: ground.settings.policyOf },
    signal: request.signal,
    lastEventId: request.headers.get('last-event-id') ?? undefined,
    isAllowed: () => frame.gate.isStillAllowed(visit, caller, route.role),
  })
}

function respond(route: Route, answer: unknown): Response {
  return answer instanceof Response ? answer : json(answer, route.status ?? 200)
}

/** A stream that nobody will read is told so. */
function withoutBody(response: Response): Response {
  void response.body?.cancel().catch(() => {})
  return new Response(null, { status: response.status, headers: response.headers })
}
