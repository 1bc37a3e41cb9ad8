import type { InferOutput } from 'valibot'
import type { OperatorContext } from '../core/recovery/context.ts'
import type { Role } from '../lib/http/role.ts'
import type { Store } from '../core/store/store.ts'
import type { Settings } from './settings.ts'
import type { Route as ApiRoute, RouteHandler } from '../lib/http/route.ts'
import type { Responses } from '../presenters/responses.ts'
import type { Schema } from '../lib/validate/validate.ts'

/** An authenticated caller. */
export type Caller = {
  /** The name in the audit trail: a token's name, or the local user. */
  readonly name: string
  readonly role: Role
  /** Null if the surrounding server does not provide it. */
  readonly address: string | null
  /** How the caller was authenticated: as local user without tokens, by a token, a cookie, or the `access` function. */
  readonly by: 'local' | 'token' | 'cookie' | 'access'
}

/** Logins by result and refused calls by code, since the server started. */
export type CallCounts = {
  readonly logins: Readonly<Record<string, number>>
  readonly errors: Readonly<Record<string, number>>
}

/** What every handler uses. */
export type ServerContext = {
  readonly store: Store
  readonly settings: Settings
  /** The folder of journals and output of wrapped commands on this machine. */
  readonly dataFolder: string
  /** Changes are refused. */
  readonly readOnly: boolean
  readonly callCounts: CallCounts
  /** Fires when the server stops; streams end with it. */
  readonly closing: AbortSignal
}

/** What the API adds to the input of a call. */
type CallContext = {
  readonly caller: Caller
  /** Acts in the caller's name, with the policies of the config. */
  readonly context: OperatorContext
  readonly server: ServerContext
  /** Fires when the caller hangs up. */
  readonly signal: AbortSignal
  /** Checked again by streams: false once the token was removed or its role no longer suffices. */
  readonly isAllowed: () => Promise<boolean>
  /** The last event that a reconnecting stream received (`Last-Event-ID`). */
  readonly lastEventId?: string | undefined
}

/**
 * One call of the API. The same entry registers and validates it, checks its role, is tested for every role, and is
 * written into the OpenAPI document.
 */
export type Route<
  P extends Schema = Schema,
  Q extends Schema = Schema,
  B extends Schema = Schema,
  R extends keyof Responses = keyof Responses,
> = Pick<ApiRoute, 'method' | 'path'> & RouteDefinition<P, Q, B, R> & { readonly role: Role }

type RouteDefinition<
  P extends Schema = Schema,
  Q extends Schema = Schema,
  B extends Schema = Schema,
  R extends keyof Responses = keyof Responses,
> = RouteHandler<CallContext, P, Q, B, Responses[R]> & {
  readonly summary: string
  /** It reads much: a few of them run at once for each caller. A function decides by the query. */
  readonly isExpensive?: true | ((query: InferOutput<Q>) => boolean)
  /** The name of the JSON response; null for a stream, whose type is in `produces`. */
  readonly response: R | null
  readonly produces?: readonly string[]
  /** The status of a successful response, 200 by default. */
  readonly status?: 201
}

/** The role a call needs: viewers read, operators change, admins delete. */
const ROLE_OF = { GET: 'viewer', POST: 'operator', DELETE: 'admin' } as const

/** Defines a route by its method and path, as in `GET /api/runs/:run`. Types flow from the schemas. */
export function defineRoute<
  P extends Schema,
  Q extends Schema,
  B extends Schema,
  R extends keyof Responses,
>(call: `${Route['method']} /${string}`, route: RouteDefinition<P, Q, B, R>): Route<P, Q, B, R> {
  const [method, path] = call.split(' ') as [Route['method'], string]
  return { ...route, method, path, role: ROLE_OF[method] }
}
