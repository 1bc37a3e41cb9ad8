import { UsageError } from '../../core/model/errors.ts'

/** Paths of the app itself: a server that removes the base path leaves these, so they cannot be one. */
const RESERVED = ['/api', '/assets', '/runs', '/targets', '/metrics', '/healthz', '/readyz']

/** Returns `/unstuck` for `/unstuck/`. Allows only characters without a meaning in HTML, cookies or patterns. */
export function normalizeBasePath(path: string): string {
  const trimmed = path.replace(/\/+$/, '')
  if (/^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$/.test(trimmed) && !RESERVED.includes(trimmed))
    return trimmed
  throw new UsageError(
    `${JSON.stringify(path)} cannot be the base path: it starts with a slash, has letters, digits and . _ ~ - in between, and is none of ${RESERVED.join(', ')}.`,
  )
}

/** Throws unless it is a path, or an http address: the dashboard links to it. */
export function checkLoginUrl(url: string | undefined): void {
  if (url === undefined || /^\/(?![/\\])/.test(url)) return
  if (/^https?:\/\//.test(url) && URL.canParse(url)) return
  throw new UsageError(
    `loginUrl is the login page of your server, as in '/login' or 'https://example.com/login', not ${JSON.stringify(url)}.`,
  )
}

/** Throws unless `access` or `tokens` is given: a handler denies access by default. */
export function requireAccessOption(
  functionName: string,
  { access, tokens }: { readonly access?: unknown; readonly tokens?: unknown } = {},
): void {
  const hasType = (what: unknown, type: string): boolean =>
    what === undefined || typeof what === type
  const isGiven = access !== undefined || tokens !== undefined
  if (isGiven && hasType(access, 'function') && hasType(tokens, 'string')) return
  throw new UsageError(
    `${functionName}() needs a way to identify callers: give \`access\`, a function from the request to { name, role } or null, or \`tokens\`, the file that \`unstuck tokens add\` writes.`,
  )
}
