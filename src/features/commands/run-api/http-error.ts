import {
  LeaseLostError,
  PageBehindError,
  PageRejectedError,
  UsageError,
} from '../../../core/model/errors.ts'

/** Who may not call at all is hung up on: a kept connection would take the place of one who may. */
const CLOSE_CONNECTION = { connection: 'close' }

/** A call that is not done. Status and code for the program, a sentence for the person who wrote it. */
export class HttpError extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.name = 'Refusal'
    this.status = status
    this.code = code
    this.headers = headers
  }
}

/** The same for a wrong token and for a run that is not there: who guesses learns nothing. */
export function unauthorized(): HttpError {
  return new HttpError(
    401,
    'UNAUTHORIZED',
    'This call needs the token of a run that is served here: send the header "Authorization: Bearer $UNSTUCK_TOKEN". ' +
      'UNSTUCK_URL and UNSTUCK_TOKEN belong together and are new each time the command is started.',
    { 'www-authenticate': 'Bearer', ...CLOSE_CONNECTION },
  )
}

export function misdirected(host: string): HttpError {
  return new HttpError(
    421,
    'MISDIRECTED',
    `This API is only reached as ${host}, and the Host header must say so. Use the address in UNSTUCK_URL as it is.`,
    CLOSE_CONNECTION,
  )
}

export function notFound(paths: readonly string[]): HttpError {
  return new HttpError(
    404,
    'NOT_FOUND',
    `There is no such path. Behind UNSTUCK_URL there are: ${paths.join(', ')}.`,
  )
}

export function methodNotAllowed(path: string, allowed: string): HttpError {
  return new HttpError(405, 'METHOD_NOT_ALLOWED', `Call ${path} with ${allowed}.`, {
    allow: allowed,
  })
}

export function notJson(reason: string): HttpError {
  return new HttpError(
    415,
    'NOT_JSON',
    `${reason} Send the body as JSON in UTF-8, with the header "Content-Type: application/json".`,
  )
}

export function bodyTooLarge(maxBytes: number): HttpError {
  const size = maxBytes >= 1_048_576 ? `${maxBytes / 1_048_576} MB` : `${maxBytes / 1_024} KB`
  return new HttpError(
    413,
    'BODY_TOO_LARGE',
    `The body is larger than ${size}. Save fewer items at a time, on more pages, or keep large files outside and save their paths.`,
  )
}

export function invalidJson(reason: string): HttpError {
  return new HttpError(400, 'BAD_JSON', `The body cannot be read as JSON: ${reason}.`)
}

const MISTAKES_MAX = 20

export function invalidBody(mistakes: readonly string[]): HttpError {
  const more = mistakes.length - MISTAKES_MAX
  const shown = more > 0 ? [...mistakes.slice(0, MISTAKES_MAX), `${more} more`] : mistakes
  return new HttpError(400, 'BAD_BODY', `Nothing was done: ${shown.join('; ')}.`)
}

export function tooManyCalls(max: number): HttpError {
  return new HttpError(
    429,
    'TOO_MANY_CALLS',
    `${max} calls of this run are under way already. They are done one after the other: wait for an answer before the next call.`,
    { 'retry-after': '1' },
  )
}

export function stopping(): HttpError {
  return new HttpError(
    503,
    'STOPPING',
    'Unstuck no longer serves this run. Whether this call was done is not known; the next start goes on from the last saved page.',
  )
}

export function internalError(id: string): HttpError {
  return new HttpError(
    500,
    'UNEXPECTED',
    `Something failed inside Unstuck. Its log says what, under ${id}. The call may be sent again.`,
  )
}

/** What Node's parser could not read, or did not want to wait for. */
export function badRequest(parserCode: string | undefined): HttpError {
  switch (parserCode) {
    case 'HPE_HEADER_OVERFLOW':
      return new HttpError(431, 'HEADERS_TOO_LARGE', 'The headers are larger than 16 KB.')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new HttpError(408, 'TIMEOUT', 'The request did not arrive in time. Send it at once.')
    default:
      return new HttpError(400, 'BAD_REQUEST', 'This is not an HTTP/1.1 request.')
  }
}

/** How the caller hears of an error of Unstuck; null for one that it can do nothing about. */
export function toHttpError(error: unknown): HttpError | null {
  if (error instanceof HttpError) return error
  if (error instanceof LeaseLostError) {
    return new HttpError(
      409,
      'LEASE_LOST',
      `Stop now: another process has this run. ${error.message}`,
    )
  }
  if (error instanceof PageBehindError) return new HttpError(409, 'PAGE_BEHIND', error.message)
  if (error instanceof PageRejectedError) return new HttpError(422, 'PAGE_REJECTED', error.message)
  // The bodies have been checked, so the one wrong use that is left is that of a run which is over.
  if (error instanceof UsageError) {
    return new HttpError(
      409,
      'RUN_ENDED',
      'This run has already ended here: it was finished, failed or handed back. Nothing was written; end the command.',
    )
  }
  return null
}
