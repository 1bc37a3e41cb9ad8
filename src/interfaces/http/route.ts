import type { BaseIssue, BaseSchema, InferOutput } from 'valibot'
import type { OperatorContext } from '../../core/recovery/recover.ts'
import type { Role } from '../../core/model/role.ts'
import type { Store } from '../../core/store/store.ts'
import type { Settings } from '../../app/config.ts'
import type { ErrorLog } from './error-log.ts'

/** Who calls, as the gate has found out. */
export type Caller = {
  /** For the audit trail: a token's name, or the local user. */
  readonly name: string
  readonly role: Role
  /** Where from; null when the server around us does not tell. */
  readonly address: string | null
  /** How the gate knows: by nothing (alone on this machine), a token, a cookie, or the word of the server around us. */
  readonly by: 'local' | 'token' | 'cookie' | 'access'
}

export type Schema<T = unknown> = BaseSchema<unknown, T, BaseIssue<unknown>>

/** What every handler stands on. */
export type ServerContext = {
  readonly store: Store
  readonly settings: Settings
  /** Where journals and the output of wrapped commands are on this machine. */
  readonly dataFolder: string
  /** Nothing may be changed. */
  readonly readOnly: boolean
  readonly errorLog: ErrorLog
  /** Fires when the server ends: streams end with it. */
  readonly closing: AbortSignal
}

export type Call<P, Q, B> = {
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly caller: Caller
  /** Acts in the caller's name, by the config's policies. */
  readonly context: OperatorContext
  readonly server: ServerContext
  /** Fires when the caller has left. */
  readonly signal: AbortSignal
  /** Asked again by whatever lasts: false when the token was taken away, or its role is no longer enough. */
  readonly isAllowed: () => Promise<boolean>
  /** Of a stream that was cut and is asked for again: the last event that arrived (`Last-Event-ID`). */
  readonly lastEventId?: string | undefined
}

/**
 * One call of the API. The same entry registers it, validates it, guards it, is walked by the tests of roles, and is
 * written into the OpenAPI document: a route cannot be forgotten in one of them.
 */
export type Route<
  P extends Schema = Schema,
  Q extends Schema = Schema,
  B extends Schema = Schema,
  A extends Schema = Schema,
> = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** `/api/runs/:run` */
  readonly path: string
  readonly summary: string
  readonly role: Role
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  /** Of the answer in JSON; null when it is a stream, which `produces` names. */
  readonly response: A | null
  readonly produces?: readonly string[]
  /** Of a good answer; 200 unless said. */
  readonly status?: 201
  /** Answers what `answer` describes, or a response of its own for streams. */
  handle(
    call: Call<InferOutput<P>, InferOutput<Q>, InferOutput<B>>,
  ): Promise<InferOutput<A> | Response>
}

/** Types flow from the schemas. */
export function defineRoute<P extends Schema, Q extends Schema, B extends Schema, A extends Schema>(
  route: Route<P, Q, B, A>,
): Route<P, Q, B, A> {
  return route
}
