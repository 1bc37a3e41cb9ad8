import { StoreUnavailableError, UnstuckError } from '../../core/model/errors.ts'
import { redact } from '../../core/model/redact.ts'

/** A call that is not done. Status and code for the program, a sentence for the person. */
export class HttpError extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>
  /** What the body has besides the error. */
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    status: number,
    code: string,
    message: string,
    {
      headers = {},
      details = {},
      cause,
    }: Partial<Pick<HttpError, 'headers' | 'details' | 'cause'>> = {},
  ) {
    super(message, { cause })
    this.name = 'HttpRefusal'
    this.status = status
    this.code = code
    this.headers = headers
    this.details = details
  }
}

export function unauthorized(): HttpError {
  return new HttpError(
    401,
    'UNAUTHORIZED',
    'This needs a token: log in, or send the header "Authorization: Bearer TOKEN". `unstuck tokens add NAME` makes one.',
    { headers: { 'www-authenticate': 'Bearer' } },
  )
}

/** Only requests that no proxy passed on are local. */
export function notLocal(): HttpError {
  return new HttpError(
    401,
    'UNAUTHORIZED',
    'This request came through a proxy, so it is not local and needs a token. Make one on the server with ' +
      '`unstuck tokens add NAME --role operator`, then log in with it, or send the header "Authorization: Bearer TOKEN".',
    { headers: { 'www-authenticate': 'Bearer' } },
  )
}

/** A token in an address would stay in histories and logs. */
export function tokenInAddress(): HttpError {
  return new HttpError(
    401,
    'UNAUTHORIZED',
    'A token is never part of the address, where logs and histories keep it: send the header "Authorization: Bearer TOKEN". ' +
      'Take this one away with `unstuck tokens remove`.',
    { headers: { 'www-authenticate': 'Bearer' } },
  )
}

export function forbidden(needed: string, has: string): HttpError {
  return new HttpError(
    403,
    'FORBIDDEN',
    `This needs the role ${needed}, and your token has ${has}. Ask for another one: unstuck tokens add NAME --role ${needed}`,
  )
}

export function readOnly(): HttpError {
  return new HttpError(
    403,
    'READ_ONLY',
    'This server only shows: it was started with --read-only. Use the command line, or start it without.',
  )
}

export function wrongOrigin(): HttpError {
  return new HttpError(
    403,
    'WRONG_ORIGIN',
    'Without a token of its own, this call must come from the dashboard itself: same scheme, host and port. ' +
      'A program sends the header "Authorization: Bearer TOKEN", or "Origin" with the address it calls. ' +
      'Behind a proxy that ends TLS, start the server with --trust-proxy (a handler: trustProxy) and let the proxy set ' +
      'X-Forwarded-Proto and pass on Host with its port.',
  )
}

/** The `access` function of the server around us did not return. */
export function accessTimedOut(ms: number): HttpError {
  return new HttpError(
    503,
    'ACCESS_TIMED_OUT',
    `The server could not find out who is calling: its access function did not return within ${ms / 1_000} s. Nothing was done; try again.`,
    { headers: { 'retry-after': '2' } },
  )
}

/** The `access` function of the server around us threw. */
export function accessFailed(cause: unknown): HttpError {
  return new HttpError(
    503,
    'ACCESS_FAILED',
    'The server could not find out who is calling: its access function failed, and its log has the reason. Nothing was done; try again.',
    { headers: { 'retry-after': '2' }, cause },
  )
}

export function misdirected(): HttpError {
  return new HttpError(
    421,
    'MISDIRECTED',
    'This server is not known by that name. Start it with --allow-host NAME if it should be.',
  )
}

export function badRequest(mistakes: readonly string[]): HttpError {
  return new HttpError(400, 'BAD_REQUEST', `Nothing was done: ${mistakes.join('; ')}.`)
}

export function unknownRoute(): HttpError {
  return new HttpError(404, 'NOT_FOUND', 'There is no such call. /api/openapi.json lists them.')
}

/** What stands in the path cannot be the name of anything. */
export function notFound(mistakes: readonly string[]): HttpError {
  return new HttpError(404, 'NOT_FOUND', `There is no such thing: ${mistakes.join('; ')}.`)
}

export function wrongMethod(allowed: readonly string[]): HttpError {
  const list = allowed.join(', ')
  return new HttpError(405, 'METHOD_NOT_ALLOWED', `Call this with ${list}.`, {
    headers: { allow: list },
  })
}

export function notJson(): HttpError {
  return new HttpError(
    415,
    'NOT_JSON',
    'Send the body as JSON in UTF-8, not compressed, with the header "Content-Type: application/json"; {} where there is nothing to say.',
  )
}

export function tooLarge(bytesMax: number): HttpError {
  return new HttpError(
    413,
    'BODY_TOO_LARGE',
    `The body is larger than ${bytesMax / 1_024} KB. Ask for less at a time.`,
  )
}

export function tooManyRequests(afterSeconds: number, what: string): HttpError {
  return new HttpError(
    429,
    'TOO_MANY_REQUESTS',
    `Too many ${what}. Wait ${afterSeconds} s, then try again.`,
    { headers: { 'retry-after': String(afterSeconds) } },
  )
}

/** What would be done now is not what was looked at. `preview`: what it would be. */
export function planChanged(preview: unknown): HttpError {
  return new HttpError(
    409,
    'PLAN_CHANGED',
    'Something changed since the preview: nothing was done. Look at the new one, then confirm it.',
    { details: { preview } },
  )
}

export function internalError(id: string): HttpError {
  return new HttpError(
    500,
    'UNEXPECTED',
    `Something failed inside Unstuck. Its log says what, under ${id}.`,
  )
}

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  E_NOT_FOUND: 404,
  E_USAGE: 400,
  E_REFUSED: 409,
  E_ALREADY_RUNNING: 409,
  E_DB_UNREACHABLE: 503,
}

/** How the caller hears of an error; null for one that they can do nothing about. */
export function toHttpError(error: unknown): HttpError | null {
  if (error instanceof HttpError) return error
  const status = error instanceof UnstuckError ? STATUS_BY_CODE[error.code] : undefined
  if (!(error instanceof UnstuckError) || status === undefined) return null
  return new HttpError(status, error.code.replace(/^E_/, ''), redact(error.message), {
    headers: error instanceof StoreUnavailableError ? { 'retry-after': '2' } : {},
  })
}
