import { isIP } from 'node:net'

const LOCAL = ['127.0.0.1', 'localhost', '[::1]'] as const
const ALL_INTERFACES = ['0.0.0.0', '::']

/** Returns true if only this machine can reach a server that listens on this address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/**
 * Returns a check of the Host header against the server's own names. It stops DNS rebinding: a web page can point its
 * name to this machine, but the browser still sends that name as Host.
 */
export function makeHostCheck(host: string, allowed: readonly string[]): (name: string) => boolean {
  const names = new Set([...LOCAL, toHostHeader(host), ...allowed.map(toHostHeader)])
  // A server on all interfaces accepts any IP address: rebinding needs a name.
  const isAllInterfaces = ALL_INTERFACES.includes(host)
  return (header) => {
    const name = withoutPort(header)?.toLowerCase()
    if (name === undefined) return false
    return names.has(name) || (isAllInterfaces && isIP(name.replace(/^\[(.+)\]$/, '$1')) > 0)
  }
}

function toHostHeader(host: string): string {
  return (isIP(host) === 6 ? `[${host}]` : host).toLowerCase()
}

function withoutPort(header: string): string | undefined {
  return /^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/.exec(header)?.[1]
}

/** Headers that proxies add, and local programs do not. */
const FORWARDED = /^(forwarded|via|x-forwarded.*|.*-ip)$/

/** Returns true if a proxy forwarded the request: the sender may then be elsewhere. */
export function isForwarded({ headers }: Request): boolean {
  return [...headers.keys()].some((name) => FORWARDED.test(name))
}

/** Returns the entry of the nearest proxy; earlier ones may come from the caller. */
export function lastEntry(list: string | null): string | null {
  return list?.split(',').at(-1)?.trim().toLowerCase() || null
}

/**
 * Returns the origin under which browsers see this server. Scheme and host are those of the connection, or of a trusted proxy's
 * `X-Forwarded-Proto` and `X-Forwarded-Host`. Null if they do not form an http(s) address.
 */
export function publicOrigin({ headers, url }: Request, trustProxy: boolean): URL | null {
  const forwarded = (name: string): string | null =>
    trustProxy ? lastEntry(headers.get(`x-forwarded-${name}`)) : null
  const connection = new URL(url)
  const scheme = forwarded('proto') ?? connection.protocol.slice(0, -1)
  const host = forwarded('host') ?? headers.get('host') ?? connection.host
  return scheme === 'http' || scheme === 'https' ? URL.parse(`${scheme}://${host}/`) : null
}
