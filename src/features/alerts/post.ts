import { request as requestHttp, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { abortable } from '../../core/worker/abortable.ts'
import { resolveAllowed, type IpAddress, type ResolveHost } from './address.ts'
import { ATTEMPT_TIMEOUT_MS, DeliveryError, stoppedBeforeAnswer, unreachable } from './channel.ts'

/** Where to, and what an operator allowed for it beyond https to the public internet. */
export type WebhookSettings = {
  readonly url: string
  readonly allowPrivate: boolean
  readonly allowHttp: boolean
  /** Left out: the system's. */
  readonly resolve?: ResolveHost | undefined
}

const RESPONSE_MAX = 64 * 1024

/**
 * Sends JSON to a configured address, if that is allowed. Follows no redirect, times out after five seconds, and reads
 * only the status of the response: its text is never kept or shown.
 */
export async function postJson(
  settings: WebhookSettings,
  body: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const url = URL.parse(settings.url)
  if (!url) throw new DeliveryError('its url is not one')
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && settings.allowHttp)) {
    throw new DeliveryError('its url is not https; allowHttp: true would allow http')
  }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)])
  try {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const addresses = await abortable(limit, () => resolveAllowed(host, settings))
    const status = await send(url, host, addresses, body, headers, limit)
    if (status >= 300 && status < 400)
      throw new DeliveryError(`it answered ${status}, a redirect, which is not followed`)
    if (status < 200 || status >= 300) throw new DeliveryError(`it answered ${status}`)
  } catch (error) {
    throw toDeliveryError(error, signal)
  }
}

function send(
  url: URL,
  host: string,
  addresses: readonly IpAddress[],
  body: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<number> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const outgoing = request(
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
      (response) => {
        drain(response)
        response.on('error', () => {}).once('close', () => resolve(response.statusCode ?? 0))
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** Read to its end, so that the other side is not cut off; what is too long is. */
function drain(response: IncomingMessage): void {
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > RESPONSE_MAX) response.destroy()
  })
}

function toDeliveryError(error: unknown, stopped: AbortSignal): DeliveryError {
  if (error instanceof DeliveryError) return error
  if (stopped.aborted) return stoppedBeforeAnswer()
  const { name, code } = error as { name?: unknown; code?: unknown }
  if (name === 'TimeoutError' || name === 'AbortError')
    return new DeliveryError(`it did not answer within ${ATTEMPT_TIMEOUT_MS / 1_000} s`)
  return unreachable('it', { code })
}
