import { PlanChangedError, StoreUnavailableError, UnstuckError } from '../../core/model/errors.ts'
import { redact } from '../../core/model/redact.ts'
import type { BodyErrors } from '../../lib/http/body.ts'
import type { Caller } from '../../contracts/route.ts'
import { HttpError } from '../../lib/http/errors.ts'
import type { Role } from '../../lib/http/role.ts'
import type { CallErrors } from '../../lib/http/route.ts'

/** How callers of a server log in; `url`: the login page of the application that the handler is part of, if it was given. */
export type Login = { readonly by: readonly ('access' | 'token')[]; readonly url: string | null }

const HEADERS = { 'www-authenticate': 'Bearer' }

export function unauthorized(login: Login): HttpError {
  const message = login.by.includes('access')
    ? rejectedByAccess(login)
    : 'This needs a token: log in, or send the header "Authorization: Bearer TOKEN". `unstuck tokens add NAME` makes one.'
  return new HttpError(401, 'UNAUTHORIZED', message, { headers: HEADERS, details: { login } })
}

function rejectedByAccess({ by, url }: Login): string {
  return (
    'The application that this is part of did not let the request in. ' +
    `Log in ${url === null ? 'to the application' : `at ${url}`} first. ` +
    'If you are logged in, ask its operator for a role: viewer, operator or admin.' +
    (by.includes('token') ? ' A program sends the header "Authorization: Bearer TOKEN".' : '')
  )
}

/** No token has this value. */
export function wrongToken(login: Login): HttpError {
  if (!login.by.includes('token')) {
    const message = `This server takes no tokens. ${rejectedByAccess(login)}`
    return new HttpError(401, 'UNAUTHORIZED', message, { headers: HEADERS, details: { login } })
  }
  return new HttpError(
    401,
    'UNAUTHORIZED',
    'This is not a token of this server, or no longer. `unstuck tokens list` shows their names, `unstuck tokens add NAME` makes one.',
  )
}

/** A request that a proxy forwarded is not local. */
export function notLocal(): HttpError {
  return new HttpError(
    401,
    'UNAUTHORIZED',
    'This request came through a proxy, so it is not local and needs a token. Make one on the server with ' +
      '`unstuck tokens add NAME --role operator`, then log in with it, or send the header "Authorization: Bearer TOKEN".',
    { headers: HEADERS },
  )
}

/** A token in a URL would be kept in histories and logs. */
export function tokenInAddress({ by }: Login): HttpError {
  return new HttpError(
    401,
    'UNAUTHORIZED',
    'A token is never part of the address, where logs and histories keep it: send the header "Authorization: Bearer TOKEN".' +
      (by.includes('token') ? ' Take this one away with `unstuck tokens remove`.' : ''),
    { headers: HEADERS },
  )
}

export function forbidden(needed: Role, { role, by }: Caller): HttpError {
  const message =
    by === 'access'
      ? `This needs the role ${needed}, and you have ${role}. The application that this is part of gives the roles: ask its operator for another one.`
      : `This needs the role ${needed}, and your token has ${role}. Ask for another one: unstuck tokens add NAME --role ${needed}`
  return new HttpError(403, 'FORBIDDEN', message)
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

/** The `access` function did not return in time. */
export function accessTimedOut(ms: number): HttpError {
  return new HttpError(
    503,
    'ACCESS_TIMED_OUT',
    `The caller could not be identified: the access function of the server did not return within ${ms / 1_000} s. Nothing was done; try again.`,
    { headers: { 'retry-after': '2' } },
  )
}

/** The `access` function threw. */
export function accessFailed(cause: unknown): HttpError {
  return new HttpError(
    503,
    'ACCESS_FAILED',
    'The caller could not be identified: the access function of the server failed, and its log has the reason. Nothing was done; try again.',
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

/** A value in the path is not even a possible id. */
function notFound(mistakes: readonly string[]): HttpError {
  return new HttpError(404, 'NOT_FOUND', `There is no such thing: ${mistakes.join('; ')}.`)
}

export function wrongMethod(allowed: readonly string[]): HttpError {
  const list = allowed.join(', ')
  return new HttpError(405, 'METHOD_NOT_ALLOWED', `Call this with ${list}.`, {
    headers: { allow: list },
  })
}

function notJson(): HttpError {
  return new HttpError(
    415,
    'NOT_JSON',
    'Send the body as JSON in UTF-8, not compressed, with the header "Content-Type: application/json"; {} if it is empty.',
  )
}

function tooLarge(bytesMax: number): HttpError {
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

/** The plan is no longer the one that was previewed. `preview` is the new one. */
export function planChanged(preview: unknown): HttpError {
  return new HttpError(
    409,
    'PLAN_CHANGED',
    'Something changed since the preview: nothing was done. Check the new one, then confirm it.',
    { details: { preview } },
  )
}

export function internalError(id: string): HttpError {
  return new HttpError(
    500,
    'UNEXPECTED',
    `Something failed inside Unstuck. Its log has the error under ${id}.`,
  )
}

export const BODY_MAX_BYTES = 256 * 1_024

export const BODY_ERRORS: BodyErrors = {
  notJson,
  tooLarge,
  badJson: (reason) => badRequest([`the body cannot be read as JSON: ${reason}`]),
}

/** Messages never repeat what was sent. */
export const CALL_ERRORS: CallErrors = {
  badPath: notFound,
  badQuery: badRequest,
  badBody: badRequest,
  mistakesMax: 10,
  showsValues: false,
}

export function severalHosts(): HttpError {
  const headers = { connection: 'close' }
  return new HttpError(400, 'BAD_REQUEST', 'This request has several Host headers.', { headers })
}

/** Returns the error for a request that Node's parser rejects. */
export function malformedRequest(parserCode: string | undefined): HttpError {
  const [status, what] = MALFORMED[parserCode ?? ''] ?? [400, 'Bad Request']
  return new HttpError(status, 'BAD_REQUEST', `This request cannot be read: ${what}.`)
}

const MALFORMED: Readonly<Record<string, [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
}

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  E_NOT_FOUND: 404,
  E_USAGE: 400,
  E_REFUSED: 409,
  E_ALREADY_RUNNING: 409,
  E_DB_UNREACHABLE: 503,
}

/** Returns the error as the caller gets it; null for one that the caller cannot fix. */
export function toHttpError(error: unknown): HttpError | null {
  if (error instanceof HttpError) return error
  if (error instanceof PlanChangedError) return planChanged(error.data.preview)
  const status = error instanceof UnstuckError ? STATUS_BY_CODE[error.code] : undefined
  if (!(error instanceof UnstuckError) || status === undefined) return null
  return new HttpError(status, error.code.replace(/^E_/, ''), redact(error.message), {
    headers: error instanceof StoreUnavailableError ? { 'retry-after': '2' } : {},
  })
}
