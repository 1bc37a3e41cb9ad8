import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { DeliveryError } from './channel.ts'

/** Where a name leads, as one asks for it. */
export type ResolveHost = (host: string) => Promise<readonly IpAddress[]>
export type IpAddress = { readonly address: string; readonly family: number }

const RESOLVE_WITH_DNS: ResolveHost = (host) => lookup(host, { all: true, verbatim: true })

/** Not the open internet: this machine, its networks, the metadata of a cloud, and what is set aside for other uses. */
const NON_PUBLIC = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // The metadata of most clouds is in here.
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  // Azure's host, though it looks public.
  ['168.63.129.16', 32],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  NON_PUBLIC.addSubnet(net, prefix, 'ipv4')
}
// Tunnels would carry an IPv4 address past the list above.
for (const [net, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  NON_PUBLIC.addSubnet(net, prefix, 'ipv6')
}
/** All of IPv6 that is routed at all: mapped, translated, local and unique local addresses are outside. */
const GLOBAL_IPV6 = new BlockList()
GLOBAL_IPV6.addSubnet('2000::', 3, 'ipv6')

export function isPublic(address: string): boolean {
  if (isIP(address) === 4) return !NON_PUBLIC.check(address, 'ipv4')
  if (isIP(address) !== 6 || address.includes('%')) return false
  return GLOBAL_IPV6.check(address, 'ipv6') && !NON_PUBLIC.check(address, 'ipv6')
}

/**
 * The addresses that a host may be reached at. They are looked up once and connected to as they are, so that a name
 * cannot lead elsewhere the second time. One that is not public spoils all.
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
