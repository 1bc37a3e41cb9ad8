import { isIP } from 'node:net'

const LOCAL = ['127.0.0.1', 'localhost', '[::1]'] as const
const ALL_INTERFACES = ['0.0.0.0', '::']

/** Whether only this machine can reach an address that a server listens on. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/**
 * By which names the server may be called. A web page can have its own name point to this machine (DNS rebinding), and
 * would then be let in like the dashboard: but it cannot change the name in the Host header.
 */
export function makeHostCheck(host: string, allowed: readonly string[]): (name: string) => boolean {
  const names = new Set([...LOCAL, toHostHeader(host), ...allowed.map(toHostHeader)])
  // Listening on every address, it is called by any of them; an address is not a name that somebody could point here.
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
