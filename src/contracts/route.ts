import type { InferOutput } from 'valibot'
import type { OperatorContext } from '../core/recovery/context.ts'
import type { Role } from '../core/model/role.ts'
import type { Store } from '../core/store/store.ts'
import type { Settings } from './settings.ts'
import type { Input, Route as ApiRoute } from '../lib/http/route.ts'
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

export type Call<P, Q, B> = Input<P, Q, B> & CallContext

/**
 * One call of the API. The same entry registers and validates it, checks its role, is tested for every role, and is
 * written into the OpenAPI document.
 */
export type Route<
  P extends Schema = Schema,
  Q extends Schema = Schema,
  B extends Schema = Schema,
  A extends Schema = Schema,
> = ApiRoute<CallContext, P, Q, B, InferOutput<A>> & {
  readonly summary: string
  readonly role: Role
  /** The schema of the JSON response; null for a stream, whose type is in `produces`. */
  readonly response: A | null
  readonly produces?: readonly string[]
  /** The status of a successful response, 200 by default. */
  readonly status?: 201
}

/** Types flow from the schemas. */
export function defineRoute<P extends Schema, Q extends Schema, B extends Schema, A extends Schema>(
  route: Route<P, Q, B, A>,
): Route<P, Q, B, A> {
  return route
}
