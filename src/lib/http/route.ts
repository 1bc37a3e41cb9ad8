import type { InferOutput } from 'valibot'
import { cutMistakes, object, validate, type Schema } from '../validate/validate.ts'
import type { HttpError } from './errors.ts'

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

const EMPTY = object({})

type ToError = (mistakes: readonly string[]) => HttpError

/** How an API words mistakes in a call. */
export type CallErrors = {
  readonly badPath: ToError
  readonly badQuery: ToError
  readonly badBody: ToError
  readonly mistakesMax: number
  /** Repeat rejected values of a body in the message. */
  readonly showsValues: boolean
}

type Sent = {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: URLSearchParams
  readonly json: unknown
}

/** Returns the input of a call as its route declares it. Throws an error that names every mistake. */
export function validateCall(
  route: Pick<Route, 'params' | 'query' | 'body'>,
  { params = {}, query, json }: Sent,
  errors: CallErrors,
): Input {
  const parse = (schema: Schema, value: unknown, whole: string, toError: ToError): unknown => {
    const options = { whole, showsValues: errors.showsValues }
    const read = validate(schema, value, options)
    if (read.mistakes.length > 0) throw toError(cutMistakes(read.mistakes, errors.mistakesMax))
    return read.value
  }
  return {
    params: parse(route.params ?? EMPTY, params, 'the path', errors.badPath),
    query: parse(
      route.query ?? EMPTY,
      query ? readQuery(query, errors) : {},
      'the query',
      errors.badQuery,
    ),
    body: parse(
      route.body ?? EMPTY,
      json === undefined && !route.body ? {} : json,
      'the body',
      errors.badBody,
    ),
  }
}

/** A parameter given once is a text, given several times a list. */
function readQuery(search: URLSearchParams, errors: CallErrors): Record<string, unknown> {
  const query: Record<string, unknown> = {}
  for (const name of new Set(search.keys())) {
    const values = search.getAll(name)
    // No stored text contains NUL, and PostgreSQL rejects it with an error of its own.
    if (values.some((value) => value.includes('\0')))
      throw errors.badQuery([`${JSON.stringify(name.slice(0, 60))} has a NUL`])
    Object.defineProperty(query, name, {
      value: values.length === 1 ? values[0] : values,
      enumerable: true,
    })
  }
  return query
}
