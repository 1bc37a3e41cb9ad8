import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import * as v from 'valibot'
import { defineRoute, type Caller, type ServerContext, type Route } from '../../contracts/route.ts'
import { VERSION } from '../../core/host/version.ts'
import { iso } from '../../core/model/time.ts'
import { readJson } from '../../lib/http/body.ts'
import type { Peer } from '../../lib/http/node-adapter.ts'
import { jsonResponse } from '../../lib/http/response.ts'
import { validateCall } from '../../lib/http/route.ts'
import type { Schema } from '../../lib/validate/validate.ts'
import type { Session } from '../../presenters/responses.ts'
import type { Auth } from './auth.ts'
import type { AppContext } from './call-route.ts'
import { BODY_ERRORS, BODY_MAX_BYTES, CALL_ERRORS } from './http-error.ts'

const DOCUMENT = new URL('../../../docs/reference/http-api.openapi.json', import.meta.url)
let document: unknown

/** Returns what the dashboard loads first. */
async function sessionOf(caller: Caller, server: ServerContext): Promise<Session> {
  const { engine, location } = server.store
  return {
    version: VERSION,
    name: caller.name,
    role: caller.role,
    loggedIn: caller.by === 'cookie',
    readOnly: server.readOnly,
    store: { engine, where: location },
    now: iso(await server.store.now()),
  }
}

/** The calls about the API itself. */
export const SESSION_ROUTES: readonly Route<any, any, any, any>[] = [
  defineRoute('GET /api/session', {
    summary: 'The caller, its role, and the server.',
    response: 'session',
    handle: ({ caller, server }) => sessionOf(caller, server),
  }),
  defineRoute('GET /api/openapi.json', {
    summary: 'This document.',
    response: 'openApi',
    handle: async () =>
      (document ??= JSON.parse(readFileSync(DOCUMENT, 'utf8'))) as Record<string, unknown>,
  }),
]

/** The calls that need no token. */

export const loginBody = v.strictObject({
  token: v.pipe(v.string(), v.minLength(1), v.maxLength(512)),
})

/** Starts a session for a browser, which keeps the session's secret and not the token. */
export async function logIn(
  { auth, server, errorLog }: Pick<AppContext, 'auth' | 'server' | 'errorLog'>,
  request: Request,
  peer: Peer,
): Promise<Response> {
  try {
    const { token } = (await readBody(request, loginBody)) as v.InferOutput<typeof loginBody>
    const { caller, cookie } = await auth.logIn(request, peer, token)
    const session = await sessionOf(caller, await server())
    errorLog.countLogin()
    return jsonResponse(session, 200, { 'set-cookie': cookie })
  } catch (error) {
    errorLog.countLogin(error)
    throw error
  }
}

export async function logOut(auth: Auth, request: Request): Promise<Response> {
  await readBody(request)
  return jsonResponse({}, 200, { 'set-cookie': await auth.logOut(request) })
}

const READY_TIMEOUT_MS = 2_000

/** Reports whether the database can be reached. */
export async function readiness(server: AppContext['server']): Promise<Response> {
  const ok = await Promise.race([
    server()
      .then(({ store }) => store.now())
      .then(
        () => true,
        () => false,
      ),
    sleep(READY_TIMEOUT_MS, false, { ref: false }),
  ])
  return jsonResponse({ ok }, ok ? 200 : 503)
}

async function readBody(request: Request, schema?: Schema): Promise<unknown> {
  const json = await readJson(request, BODY_MAX_BYTES, BODY_ERRORS)
  const sent = { json: json === undefined ? {} : json }
  return validateCall(schema ? { body: schema } : {}, sent, CALL_ERRORS).body
}
