/** Stored with each key. Keys live for years: a change of the rules below is a new version, never an edit. */
export const URL_KEY_VERSION = 1

const TRACKING =
  /^(utm_.+|fbclid|gclid|dclid|gbraid|wbraid|msclkid|yclid|mc_cid|mc_eid|igshid|_ga|_gl)$/i

/**
 * Returns the key of an item with this address: host in lower case, no default port, no fragment, no tracking parameters,
 * parameters in order, no trailing slash. Null if it is not an http(s) address.
 */
export function canonicalUrl(address: string | URL): string | null {
  const url = URL.parse(String(address))
  if (!url || !/^https?:/.test(url.href)) return null
  // `URL` has already lowered the host and dropped the default port: most addresses need no more.
  if (!/[?#]|\/$/.test(url.href)) return url.href
  const path = url.pathname.length > 1 ? url.pathname.replace(/\/+$/, '') : ''
  return `${url.protocol}//${credentials(url)}${url.host}${path}${query(url)}`
}

function query(url: URL): string {
  if (url.search.length < 2) return ''
  // Pairs are kept as they were written: decoding and encoding again would merge addresses that differ.
  const pairs = url.search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && !TRACKING.test(pair.split('=', 1)[0]!))
    .sort()
  return pairs.length > 0 ? `?${pairs.join('&')}` : ''
}

function credentials(url: URL): string {
  if (!url.username && !url.password) return ''
  return url.password ? `${url.username}:${url.password}@` : `${url.username}@`
}
