import { setTimeout as sleep } from 'node:timers/promises'
import * as v from 'valibot'
import { jsonResponse } from './response.ts'
import type { AppContext } from './call-route.ts'
import type { Auth, Peer } from './auth.ts'
import { sessionOf } from './session-routes.ts'
import { readBody, readJson } from './validate.ts'

/** What can be called without a token. */

export const loginBody = v.strictObject({
  token: v.pipe(v.string(), v.minLength(1), v.maxLength(512)),
})

/** Starts a session for a browser: the token itself is not kept there. */
export async function logIn(
  { auth, server, errorLog }: Pick<AppContext, 'auth' | 'server' | 'errorLog'>,
  request: Request,
  peer: Peer,
): Promise<Response> {
  try {
    const { token } = readBody(loginBody, await readJson(request)) as v.InferOutput<
      typeof loginBody
    >
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
  readBody(undefined, await readJson(request))
  return jsonResponse({}, 200, { 'set-cookie': await auth.logOut(request) })
}

const READY_TIMEOUT_MS = 2_000

/** Whether the database answers, and nothing more. */
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
