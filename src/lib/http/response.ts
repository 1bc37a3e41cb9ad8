import { STATUS_CODES } from 'node:http'
import { safeJson } from '../text/safe-text.ts'
import type { HttpError } from './errors.ts'

/** Pages show text from crawled sites: they load only their own files and cannot be framed. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const SECURITY_HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const

/** Adds the headers of a server that browsers call. Only files of the dashboard may be cached. */
export function withSecurityHeaders(response: Response): Response {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.headers.set(name, value)
  if (!response.headers.has('cache-control')) response.headers.set('cache-control', 'no-store')
  return response
}

const JSON_HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const

/** A response as text. */
export type JsonReply = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** Returns data as JSON that is also safe to print on a terminal. */
export function jsonReply(
  data: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): JsonReply {
  const text = safeJson(data)
  const length = String(Buffer.byteLength(text))
  return { status, headers: { ...JSON_HEADERS, 'content-length': length, ...headers }, text }
}

export function errorReply(error: HttpError): JsonReply {
  return jsonReply(errorBody(error), error.status, error.headers)
}

export function jsonResponse(...parts: Parameters<typeof jsonReply>): Response {
  return toResponse(jsonReply(...parts))
}

export function errorResponse(error: HttpError): Response {
  return toResponse(errorReply(error))
}

function toResponse({ status, headers, text }: JsonReply): Response {
  return new Response(text, { status, headers })
}

/** Returns an error as the bytes of a response, for a connection on which no request could be read. */
export function errorText(error: HttpError): string {
  const text = safeJson(errorBody(error))
  const headers = {
    ...JSON_HEADERS,
    ...error.headers,
    connection: 'close',
    'content-length': Buffer.byteLength(text),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join('')}\r\n${text}`
}

function errorBody({ code, message, details }: HttpError): unknown {
  return { error: { code, message }, ...details }
}
