import { setTimeout as sleep } from 'node:timers/promises'
import * as v from 'valibot'
import { json } from './response.ts'
import type { Frame } from './call-route.ts'
import type { Gate, Peer } from './auth.ts'
import { sessionOf } from './session-routes.ts'
import { readBody, readJson } from './validate.ts'

/** What can be called without a token. */

export const loginBody = v.strictObject({
  token: v.pipe(v.string(), v.minLength(1), v.maxLength(512)),
})

/** Starts a session for a browser: the token itself is not kept there. */
export async function logIn(
  { gate, ground, refusals }: Pick<Frame, 'gate' | 'ground' | 'refusals'>,
  request: Request,
  peer: Peer,
): Promise<Response> {
  try {
    const { token } = readBody(loginBody, await readJson(request)) as v.InferOutput<
      typeof loginBody
    >
    const { caller, cookie } = await gate.logIn(request, peer, token)
    const session = await sessionOf(caller, await ground())
    refusals.countLogin()
    return json(session, 200, { 'set-cookie': cookie })
  } catch (error) {
    refusals.countLogin(error)
    throw error
  }
}

export async function logOut(gate: Gate, request: Request): Promise<Response> {
  readBody(undefined, await readJson(request))
  return json({}, 200, { 'set-cookie': await gate.logOut(request) })
}

const PATIENCE_MS = 2_000

/** Whether the database answers, and nothing more. */
export async function isReady(ground: Frame['ground']): Promise<Response> {
  const ok = await Promise.race([
    ground()
      .then(({ store }) => store.now())
      .then(
        () => true,
        () => false,
      ),
    sleep(PATIENCE_MS, false, { ref: false }),
  ])
  return json({ ok }, ok ? 200 : 503)
}
