const MAX_AGE_SECONDS = 24 * 3_600

/** The server that a cookie belongs to. Browsers ignore the port, so it is part of the cookie's name. */
export type CookieScope = {
  /** The origin under which browsers see the server; null if unknown. */
  readonly origin: URL | null
  readonly path: string
}

function cookieName({ origin, path }: CookieScope): string {
  const isSecure = origin?.protocol === 'https:'
  const port = origin?.port || (isSecure ? '443' : '80')
  // Browsers accept this prefix only over TLS, with path /, and from the host itself.
  return `${isSecure && path === '/' ? '__Host-' : ''}unstuck-${port}`
}

/** Returns the value of the Set-Cookie header. Null as the secret removes the cookie. */
export function sessionCookie(secret: string | null, scope: CookieScope): string {
  const age = secret === null ? 0 : MAX_AGE_SECONDS
  const pair = `${cookieName(scope)}=${secret ?? ''}`
  const parts = [pair, `Path=${scope.path}`, `Max-Age=${age}`, 'HttpOnly', 'SameSite=Strict']
  return [...parts, ...(scope.origin?.protocol === 'https:' ? ['Secure'] : [])].join('; ')
}

/** Returns the session's secret from the Cookie header. Of two, browsers send the one with the longer path first. */
export function readSessionCookie(header: string | null, scope: CookieScope): string | null {
  const wanted = cookieName(scope)
  for (const pair of (header ?? '').split(';')) {
    const [name, value] = pair.trim().split('=', 2)
    if (name === wanted && value) return value
  }
  return null
}
