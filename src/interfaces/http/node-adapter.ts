import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { discardRest } from '../../lib/http/discard-rest.ts'
import { errorResponse } from './response.ts'
import type { Peer } from './auth.ts'
import { unknownRoute, wrongMethod, type HttpError } from './http-error.ts'
import { withSecurityHeaders } from '../../lib/http/security-headers.ts'

type Fetch = (request: Request, peer: Peer) => Promise<Response>

const DRAIN_MS = 200

/** Answers a request of Node's own server by a function from request to response. `body`: where somebody has read it already. */
export async function handleNodeRequest(
  fetch: Fetch,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { trust, url = incoming.url, body }: { trust?: () => void; url?: string; body?: unknown } = {},
): Promise<void> {
  const left = new AbortController()
  outgoing.once('close', () => left.abort())
  const request = toRequest(incoming, url ?? '/', body, left.signal)
  const address = incoming.socket.remoteAddress ?? null
  const peer = { address, hasWholePath: true, ...(trust && { trust }) }
  const response =
    request instanceof Request
      ? await fetch(request, peer)
      : withSecurityHeaders(errorResponse(request))
  if (left.signal.aborted) {
    await response.body?.cancel().catch(() => {})
    return
  }
  const isRead = await discardRest(incoming)
  await sendResponse(response, outgoing)
  // A connection that breaks at once would take the answer with it.
  if (!isRead) setTimeout(() => incoming.destroy(), DRAIN_MS).unref()
}

/** `.` and `..` between slashes, encoded or not, and backslashes: a URL would resolve them, and so leave the base path. */
const DOT_SEGMENT = /\\|(^|\/)(\.|%2e){1,2}(\/|$)/i

function toRequest(
  incoming: IncomingMessage,
  url: string,
  body: unknown,
  signal: AbortSignal,
): Request | HttpError {
  const method = incoming.method ?? 'GET'
  const [path = '/', ...query] = url.replace(/^[a-z]+:\/\/[^/?]*/i, '').split('?')
  // No request of the web can have them.
  if (/^(connect|trace|track)$/i.test(method)) return wrongMethod(['GET'])
  if (DOT_SEGMENT.test(path)) return unknownRoute()
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(incoming.headersDistinct)) {
    for (const value of values) headers.append(name, value)
  }
  const isEncrypted = 'encrypted' in incoming.socket
  // The host is looked at by the gate, in the header; what it says must not become a part of the address.
  const address = new URL(`${isEncrypted ? 'https' : 'http'}://unstuck.invalid/`)
  address.pathname = path
  address.search = query.join('?')
  if (method === 'GET' || method === 'HEAD')
    return new Request(address, { method, headers, signal })
  return new Request(address, {
    method,
    headers,
    signal,
    // Read only when somebody asks for it, and not closed with it: the answer goes out on the same connection.
    body: body === undefined ? streamOf(incoming) : JSON.stringify(body),
    duplex: 'half',
  })
}

function streamOf(incoming: IncomingMessage): ReadableStream {
  return ReadableStream.from(incoming.iterator({ destroyOnReturn: false }))
}

async function sendResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  const { 'set-cookie': _, ...headers } = Object.fromEntries(response.headers)
  const cookies = response.headers.getSetCookie()
  outgoing.writeHead(response.status, {
    ...headers,
    ...(cookies.length > 0 && { 'set-cookie': cookies }),
  })
  if (!response.body) {
    outgoing.end()
    return
  }
  outgoing.flushHeaders()
  // Whoever left in the middle, or a stream that broke: the connection is closed, and that is all there is to say.
  await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => {})
}
