import { STATUS_CODES, type ServerResponse } from 'node:http'
import type { HttpError } from './http-error.ts'

export type ApiResponse = {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

const HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const

export function errorResponse({ status, code, message, headers }: HttpError): ApiResponse {
  return { status, body: { error: { code, message } }, headers }
}

/** Sends it whole; nothing happens when nobody listens any more. */
export function sendResponse(
  response: ServerResponse,
  { status, body, headers }: ApiResponse,
): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    ...HEADERS,
    ...headers,
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}

/** The same for a connection on which no request could be read. */
export function toHttpText({ status, body, headers }: ApiResponse): string {
  const text = JSON.stringify(body)
  const all = {
    ...HEADERS,
    ...headers,
    connection: 'close',
    'content-length': Buffer.byteLength(text),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`
}
