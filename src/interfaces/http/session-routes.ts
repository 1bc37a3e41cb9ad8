import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import { iso } from '../../core/model/time.ts'
import { VERSION } from '../../core/host/version.ts'
import { defineRoute, type Caller, type Ground, type Route } from './route.ts'
import { session } from '../../presenters/schema/overview.ts'

const DOCUMENT = new URL('../../../docs/http-api.openapi.json', import.meta.url)
let document: unknown

/** What the dashboard needs to know first. */
export async function sessionOf(caller: Caller, ground: Ground): Promise<Session> {
  const { engine, where } = ground.store
  return {
    version: VERSION,
    name: caller.name,
    role: caller.role,
    loggedIn: caller.by === 'cookie',
    readOnly: ground.readOnly,
    store: { engine, where },
    now: iso(await ground.store.now()),
  }
}

type Session = v.InferOutput<typeof session>

/** What the frame itself answers. */
export const OWN_ROUTES: readonly Route<any, any, any, any>[] = [
  defineRoute({
    method: 'GET',
    path: '/api/session',
    summary: 'Who is asking, with which role, and what about.',
    role: 'viewer',
    answer: session,
    handle: ({ caller, ground }) => sessionOf(caller, ground),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/openapi.json',
    summary: 'This document.',
    role: 'viewer',
    answer: v.looseObject({}),
    handle: async () =>
      (document ??= JSON.parse(readFileSync(DOCUMENT, 'utf8'))) as Record<string, unknown>,
  }),
]
