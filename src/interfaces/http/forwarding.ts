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
