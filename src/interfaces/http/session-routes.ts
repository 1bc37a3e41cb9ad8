import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import { iso } from '../../core/model/time.ts'
import { VERSION } from '../../core/host/version.ts'
import { defineRoute, type Caller, type ServerContext, type Route } from '../../contracts/route.ts'
import { session } from '../../presenters/schema/overview.ts'

const DOCUMENT = new URL('../../../docs/reference/http-api.openapi.json', import.meta.url)
let document: unknown

/** Returns what the dashboard loads first. */
export async function sessionOf(caller: Caller, server: ServerContext): Promise<Session> {
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

type Session = v.InferOutput<typeof session>

/** The calls about the API itself. */
export const SESSION_ROUTES: readonly Route<any, any, any, any>[] = [
  defineRoute({
    method: 'GET',
    path: '/api/session',
    summary: 'Who is asking, with which role, and what about.',
    role: 'viewer',
    response: session,
    handle: ({ caller, server }) => sessionOf(caller, server),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/openapi.json',
    summary: 'This document.',
    role: 'viewer',
    response: v.looseObject({}),
    handle: async () =>
      (document ??= JSON.parse(readFileSync(DOCUMENT, 'utf8'))) as Record<string, unknown>,
  }),
]
