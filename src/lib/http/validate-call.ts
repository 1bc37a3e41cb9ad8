import { cutMistakes, object, validate, type Schema } from '../validate/validate.ts'
import type { HttpError } from './errors.ts'
import type { Input, Route } from './route.ts'

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
