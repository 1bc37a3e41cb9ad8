import type { InferOutput } from 'valibot'
import type { Schema } from '../validate/validate.ts'

/** A request as parsed by the schemas of its route. */
export type Input<P = unknown, Q = unknown, B = unknown> = {
  readonly params: P
  readonly query: Q
  readonly body: B
}

/** One call of an API. `C` is what the API adds to the input of every call. */
export type Route<
  C = unknown,
  P extends Schema = Schema,
  Q extends Schema = Schema,
  B extends Schema = Schema,
  R = unknown,
> = RouteHandler<C, P, Q, B, R> & {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** `/api/runs/:run` */
  readonly path: string
}

export type RouteHandler<C, P extends Schema, Q extends Schema, B extends Schema, R> = {
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  /** Returns the data of the response, or a response of its own for streams. */
  handle(
    call: Input<InferOutput<P>, InferOutput<Q>, InferOutput<B>> & C,
  ): R | Response | Promise<R | Response>
}
