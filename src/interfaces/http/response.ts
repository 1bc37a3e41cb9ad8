import { safeJson } from '../../core/events/safe-text.ts'
import type { HttpError } from './http-error.ts'

/** An answer in JSON that is also safe to look at in a terminal. */
export function jsonResponse(
  data: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const text = safeJson(data)
  return new Response(text, {
    status,
    headers: {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
      ...headers,
    },
  })
}

export function errorResponse({ status, code, message, headers, details }: HttpError): Response {
  return jsonResponse({ error: { code, message }, ...details }, status, headers)
}
