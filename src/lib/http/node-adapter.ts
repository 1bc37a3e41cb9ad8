import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { hasBody } from './body.ts'
import type { JsonReply } from './response.ts'

/** What a server knows about the sender of a request. */
export type Peer = {
  readonly address?: string | null
  /** Marks the connection as authenticated: it is not closed to make room for others. */
  readonly trust?: () => void
  /** The path as it was sent; a `Request` has resolved its dots. Unknown inside another server. */
  readonly path?: string
  /** True if the URL of the request has the whole path: no server around this one removed the base path. */
  readonly hasWholePath?: boolean
}

export type Fetch = (request: Request, peer: Peer) => Promise<Response>

/** Handles a request of Node's server. `trust`: see `Peer`. */
export type NodeHandler = (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  trust: () => void,
) => Promise<void>

/** The part of a `Request` that an API with JSON bodies reads. It is made without web streams, in a third of the time. */
export type JsonRequest = {
  readonly method: string
  readonly headers: Pick<Headers, 'get' | 'has'>
  readonly body: AsyncIterable<Uint8Array> | null
  /** Fires when the client hangs up before it has the response. */
  readonly signal: AbortSignal
}

/** Returns a handler for an API with JSON bodies. */
export function jsonHandler(
  handle: (request: JsonRequest, path: string, trust: () => void) => Promise<JsonReply>,
): NodeHandler {
  return async (incoming, outgoing, trust) => {
    const [path] = splitUrl(incoming.url)
    const reply = await handle(toJsonRequest(incoming, outgoing), path, trust)
    if (outgoing.destroyed) return
    await afterBody(incoming, () => {
      outgoing.writeHead(reply.status, reply.headers)
      outgoing.end(reply.text)
    })
  }
}

function toJsonRequest(incoming: IncomingMessage, outgoing: ServerResponse): JsonRequest {
  const { method = 'GET', headersDistinct } = incoming
  let disconnected: AbortSignal | undefined
  return {
    method,
    headers: {
      get: (name) => headersDistinct[name]?.join(', ') ?? null,
      has: (name) => headersDistinct[name] !== undefined,
    },
    body: incoming.iterator({ destroyOnReturn: false }),
    // Most calls do not read it.
    get signal() {
      return (disconnected ??= disconnectSignal(outgoing))
    },
  }
}

function disconnectSignal(outgoing: ServerResponse): AbortSignal {
  const disconnected = new AbortController()
  if (outgoing.destroyed) disconnected.abort()
  outgoing.once('close', () => {
    // To abort costs much, and after the response it has no effect.
    if (!outgoing.writableFinished) disconnected.abort()
  })
  return disconnected.signal
}

type AdapterOptions = {
  readonly trust?: () => void
  readonly url?: string | undefined
  /** The parsed body, if the server around this one has read it. */
  readonly body?: unknown
}

const DRAIN_MS = 200

/** Handles a request of Node's server with a function from `Request` to `Response`. */
export async function handleNodeRequest(
  fetch: Fetch,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { trust, url = incoming.url, body }: AdapterOptions = {},
): Promise<void> {
  const disconnected = disconnectSignal(outgoing)
  const [path, query] = splitUrl(url)
  const request = toRequest(incoming, path, query, body, disconnected)
  const address = incoming.socket.remoteAddress ?? null
  const response = await fetch(request, {
    address,
    path,
    hasWholePath: true,
    ...(trust && { trust }),
  })
  if (disconnected.aborted) {
    await response.body?.cancel().catch(() => {})
    return
  }
  await afterBody(incoming, () => sendResponse(response, outgoing))
}

/** Returns the path and the query of a request. */
function splitUrl(url = '/'): [path: string, query: string] {
  const [path = '/', ...query] = url.replace(/^[a-z]+:\/\/[^/?]*/i, '').split('?')
  return [path, query.join('?')]
}

/** Sends a response when the request is read, or too long to be read. */
async function afterBody(
  incoming: IncomingMessage,
  send: () => void | Promise<void>,
): Promise<void> {
  const isRead = await discardRest(incoming)
  await send()
  // Closing at once could discard the response before the client reads it.
  if (!isRead) setTimeout(() => incoming.destroy(), DRAIN_MS).unref()
}

/** Returns true for `.` and `..` between slashes, encoded or not, and backslashes: a URL resolves them. */
export function hasDotSegments(path: string): boolean {
  return /\\|(^|\/)(\.|%2e){1,2}(\/|$)/i.test(path)
}

/** A `Request` cannot have these methods. They get a prefix, and no route has them under any name. */
const FORBIDDEN = /^(connect|trace|track)$/i
const FORBIDDEN_PREFIX = 'FORBIDDEN-'

export function isForbiddenMethod(method: string): boolean {
  return method.startsWith(FORBIDDEN_PREFIX)
}

function toRequest(
  incoming: IncomingMessage,
  path: string,
  query: string,
  body: unknown,
  signal: AbortSignal,
): Request {
  const sent = incoming.method ?? 'GET'
  const method = FORBIDDEN.test(sent) ? `${FORBIDDEN_PREFIX}${sent}` : sent
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(incoming.headersDistinct)) {
    for (const value of values) headers.append(name, value)
  }
  const isEncrypted = 'encrypted' in incoming.socket
  // The Host header is checked by the API; its value does not become part of the URL.
  const address = new URL(`${isEncrypted ? 'https' : 'http'}://unstuck.invalid/`)
  address.pathname = path
  address.search = query
  if (method === 'GET' || method === 'HEAD' || (body === undefined && !hasBody({ headers })))
    return new Request(address, { method, headers, signal })
  return new Request(address, {
    method,
    headers,
    signal,
    // Read on demand, and not closed with the stream: the response goes out on the same connection.
    body: body === undefined ? streamOf(incoming) : JSON.stringify(body),
    duplex: 'half',
  })
}

function streamOf(incoming: IncomingMessage): ReadableStream {
  return ReadableStream.from(incoming.iterator({ destroyOnReturn: false }))
}

/** Many clients lose a response that arrives before they have sent their body: so its rest is read and discarded. */
const DISCARD_BYTES_MAX = 64 * 1024 * 1024
const DISCARD_MS_MAX = 2_000

/** Reads the rest of a request. Returns false if it is too long or too slow. */
async function discardRest(request: IncomingMessage): Promise<boolean> {
  if (request.complete || request.destroyed) return request.complete
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, DISCARD_MS_MAX)
  let left = DISCARD_BYTES_MAX
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) resolve()
  })
  request.once('end', resolve).once('close', resolve).once('error', resolve)
  await promise
  clearTimeout(timer)
  return request.complete
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
  // A body of known length is in memory already: no stream is needed.
  if (response.headers.has('content-length')) {
    outgoing.end(Buffer.from(await response.arrayBuffer()))
    return
  }
  outgoing.flushHeaders()
  // If the client hung up or the stream broke, the connection is closed; there is nothing to report.
  await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => {})
}
