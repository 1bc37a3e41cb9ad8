import { UsageError } from '../../core/model/errors.ts'

/** A server that takes the base path off before it hands over leaves these: they must not be taken for it again. */
const RESERVED = ['/api', '/assets', '/runs', '/targets', '/metrics', '/healthz', '/readyz']

/** `/unstuck` of `/unstuck/`. Only characters that mean nothing in HTML, a cookie or a pattern. */
export function normalizeBasePath(path: string): string {
  const trimmed = path.replace(/\/+$/, '')
  if (/^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$/.test(trimmed) && !RESERVED.includes(trimmed))
    return trimmed
  throw new UsageError(
    `${JSON.stringify(path)} cannot be the base path: it starts with a slash, has letters, digits and . _ ~ - in between, and is none of ${RESERVED.join(', ')}.`,
  )
}
