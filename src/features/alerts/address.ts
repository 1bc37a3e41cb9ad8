import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { DeliveryError } from './channel.ts'

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
