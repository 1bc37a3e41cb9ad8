import {
  LeaseLostError,
  PageBehindError,
  PageRejectedError,
  UsageError,
} from '../../../core/model/errors.ts'
import type { BodyErrors } from '../../../lib/http/body.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import type { CallErrors } from '../../../lib/http/route.ts'

/** Callers without a token are disconnected: a kept connection would take the place of an authenticated one. */
const CLOSE_CONNECTION = { connection: 'close' }

/** The same for a wrong token and for an unknown run, so that guessing reveals nothing. */
export function unauthorized(): HttpError {
  return new HttpError(
    401,
    'UNAUTHORIZED',
    'This call needs the token of a command that is served here: send the header "Authorization: Bearer $UNSTUCK_TOKEN". ' +
      'UNSTUCK_URL and UNSTUCK_TOKEN belong together and are new each time the command is started.',
    { headers: { 'www-authenticate': 'Bearer', ...CLOSE_CONNECTION } },
  )
}

export function misdirected(host: string): HttpError {
  return new HttpError(
    421,
    'MISDIRECTED',
    `This API is only reached as ${host}, and the Host header must have this name. Use the address in UNSTUCK_URL as it is.`,
    { headers: CLOSE_CONNECTION },
  )
}

export function notFound(calls: readonly string[]): HttpError {
  return new HttpError(
    404,
    'NOT_FOUND',
    `There is no such path. Behind UNSTUCK_URL there are: ${calls.join(', ')}.`,
  )
}

export function methodNotAllowed(path: string, allowed: string): HttpError {
  return new HttpError(405, 'METHOD_NOT_ALLOWED', `Call ${path} with ${allowed}.`, {
    headers: { allow: allowed },
  })
}

export function tooManyCalls(max: number): HttpError {
  return new HttpError(
    429,
    'TOO_MANY_CALLS',
    `${max} calls of this command are under way already: wait for a response before the next call.`,
    { headers: { 'retry-after': '1' } },
  )
}

export function stopping(): HttpError {
  return new HttpError(
    503,
    'STOPPING',
    'Unstuck no longer serves this run. Whether this call was done is not known; the next start continues from the last saved page.',
  )
}

export function internalError(id: string): HttpError {
  return new HttpError(
    500,
    'UNEXPECTED',
    `Something failed inside Unstuck. Its log has the error under ${id}. The call may be sent again.`,
  )
}

export const BODY_ERRORS: BodyErrors = {
  notJson: (reason) =>
    new HttpError(
      415,
      'NOT_JSON',
      `${reason} Send the body as JSON in UTF-8, with the header "Content-Type: application/json".`,
    ),
  badJson: (reason) =>
    new HttpError(400, 'BAD_JSON', `The body cannot be read as JSON: ${reason}.`),
  tooLarge(bytesMax) {
    const size = bytesMax >= 1_048_576 ? `${bytesMax / 1_048_576} MB` : `${bytesMax / 1_024} KB`
    return new HttpError(
      413,
      'BODY_TOO_LARGE',
      `The body is larger than ${size}. Save fewer items at a time, on more pages, or keep large files outside and save their paths.`,
    )
  },
}

export function badBody(mistakes: readonly string[]): HttpError {
  return new HttpError(400, 'BAD_BODY', `Nothing was done: ${mistakes.join('; ')}.`)
}

/** A query is ignored. */
export const CALL_ERRORS: CallErrors = {
  badPath: badBody,
  badQuery: badBody,
  badBody,
  mistakesMax: 20,
  showsValues: true,
}

/** Returns the error for a request that Node's parser rejects, or that arrives too slowly. */
export function malformedRequest(parserCode: string | undefined): HttpError {
  switch (parserCode) {
    case 'HPE_HEADER_OVERFLOW':
      return new HttpError(431, 'HEADERS_TOO_LARGE', 'The headers are larger than 16 KB.')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new HttpError(408, 'TIMEOUT', 'The request did not arrive in time. Send it at once.')
    default:
      return new HttpError(400, 'BAD_REQUEST', 'This is not an HTTP/1.1 request.')
  }
}

/** Returns the error as the caller gets it; null for one that the caller cannot fix. */
export function toHttpError(error: unknown): HttpError | null {
  if (error instanceof HttpError) return error
  if (error instanceof LeaseLostError) {
    return new HttpError(
      409,
      'LEASE_LOST',
      `Stop now: this process no longer has the claim. ${error.message}`,
    )
  }
  if (error instanceof PageBehindError) return new HttpError(409, 'PAGE_BEHIND', error.message)
  if (error instanceof PageRejectedError) return new HttpError(422, 'PAGE_REJECTED', error.message)
  // Bodies have been validated, so the only wrong use left is that of a run that has ended.
  if (error instanceof UsageError) {
    return new HttpError(
      409,
      'RUN_ENDED',
      'This run has already ended here: it was finished, failed or released. Nothing was written; end the command.',
    )
  }
  return null
}
