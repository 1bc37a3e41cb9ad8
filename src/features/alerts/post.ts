import { request as requestHttp, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { reachable, type Address, type Resolve } from './address.ts'
import { NotTaken, TRY_MS } from './channel.ts'

/** Where to, and what an operator allowed for it beyond https to the public internet. */
export type Hook = {
  readonly url: string
  readonly allowPrivate: boolean
  readonly allowHttp: boolean
  /** Left out: the system's. */
  readonly resolve?: Resolve | undefined
}

const ANSWER_MAX = 64 * 1024

/**
 * Sends JSON to an address that somebody configured. It goes only where it may go, follows nobody elsewhere, gives up
 * after five seconds, and of the answer only the status counts: its text is never kept or shown.
 */
export async function post(
  hook: Hook,
  body: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const url = URL.parse(hook.url)
  if (!url) throw new NotTaken('its url is not one')
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && hook.allowHttp)) {
    throw new NotTaken('its url is not https; allowHttp: true would allow http')
  }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(TRY_MS)])
  try {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const addresses = await until(limit, reachable(host, hook))
    const status = await send(url, host, addresses, body, headers, limit)
    if (status >= 300 && status < 400)
      throw new NotTaken(`it answered ${status}, a redirect, which is not followed`)
    if (status < 200 || status >= 300) throw new NotTaken(`it answered ${status}`)
  } catch (error) {
    throw told(error, signal)
  }
}

function send(
  url: URL,
  host: string,
  addresses: readonly Address[],
  body: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<number> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const call = request(
      {
        host,
        port: url.port,
        path: url.pathname + url.search,
        ...(url.username && {
          auth: `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`,
        }),
        method: 'POST',
        headers: { 'content-type': 'application/json', 'user-agent': 'unstuck', ...headers },
        // No connection is kept for later.
        agent: false,
        lookup: (_host, { all }, done) => {
          const [first] = addresses
          if (all) done(null, [...addresses])
          else done(null, first!.address, first!.family)
        },
        signal,
      },
      (answer) => {
        drain(answer)
        answer.on('error', () => {}).once('close', () => resolve(answer.statusCode ?? 0))
      },
    )
    call.on('error', reject)
    call.end(body)
  })
}

/** Read to its end, so that the other side is not cut off; what is too long is. */
function drain(answer: IncomingMessage): void {
  let bytes = 0
  answer.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > ANSWER_MAX) answer.destroy()
  })
}

function until<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return Promise.race([
    work,
    new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason)
      else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    }),
  ])
}

/** An error of the network names the host, and perhaps more: only its kind is told. */
function told(error: unknown, stopped: AbortSignal): NotTaken {
  if (error instanceof NotTaken) return error
  if (stopped.aborted) return new NotTaken('it was stopped before there was an answer')
  const { name, code } = error as { name?: unknown; code?: unknown }
  if (name === 'TimeoutError' || name === 'AbortError')
    return new NotTaken(`it did not answer within ${TRY_MS / 1_000} s`)
  const kind = typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? ` (${code})` : ''
  return new NotTaken(`it could not be reached${kind}`)
}
