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
