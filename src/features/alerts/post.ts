import { lookup } from 'node:dns/promises'
import { request as requestHttp, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP } from 'node:net'
import { abortable } from '../../core/worker/abortable.ts'
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

/** Looks up the addresses of a host. */
export type ResolveHost = (host: string) => Promise<readonly IpAddress[]>
export type IpAddress = { readonly address: string; readonly family: number }

const RESOLVE_WITH_DNS: ResolveHost = (host) => lookup(host, { all: true, verbatim: true })

/** Addresses outside the public internet: this machine, private networks, cloud metadata, reserved ranges. */
const NON_PUBLIC = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Contains the metadata service of most clouds.
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  // Azure's host service, though it looks public.
  ['168.63.129.16', 32],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  NON_PUBLIC.addSubnet(net, prefix, 'ipv4')
}
// Tunnels, which could carry an IPv4 address past the list above.
for (const [net, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  NON_PUBLIC.addSubnet(net, prefix, 'ipv6')
}
/** The routed part of IPv6: mapped, translated, local and unique local addresses are outside. */
const GLOBAL_IPV6 = new BlockList()
GLOBAL_IPV6.addSubnet('2000::', 3, 'ipv6')

export function isPublic(address: string): boolean {
  if (isIP(address) === 4) return !NON_PUBLIC.check(address, 'ipv4')
  if (isIP(address) !== 6 || address.includes('%')) return false
  return GLOBAL_IPV6.check(address, 'ipv6') && !NON_PUBLIC.check(address, 'ipv6')
}

/**
 * Returns the addresses of a host. They are looked up once and then connected to, so that a name cannot resolve to
 * another address the second time. Throws if any of them is not public.
 */
export async function resolveAllowed(
  host: string,
  {
    allowPrivate,
    resolve = RESOLVE_WITH_DNS,
  }: { allowPrivate: boolean; resolve?: ResolveHost | undefined },
): Promise<readonly IpAddress[]> {
  const family = isIP(host)
  const addresses =
    family > 0 ? [{ address: host, family }] : await resolve(host).catch(throwUnknownHost)
  if (addresses.length === 0) return throwUnknownHost()
  if (!allowPrivate && !addresses.every(({ address }) => isPublic(address))) {
    throw new DeliveryError(
      'its host is not on the public internet; allowPrivate: true would allow it',
    )
  }
  return addresses
}

function throwUnknownHost(): never {
  throw new DeliveryError('its host is not known by that name')
}
