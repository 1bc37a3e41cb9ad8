import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** No token has this hash, but for a chance in 2^256. */
const DUMMY_HASH = randomBytes(32)

/** 256 bits. Told once, to the command; here only its hash is kept. */
export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** Whether the Authorization header holds the token. Takes the same time for a run that is not there (null). */
export function isAuthorized(authorization: string | undefined, tokenHash: Buffer | null): boolean {
  const token = /^Bearer +([\w-]+)$/i.exec(authorization ?? '')?.[1] ?? ''
  return timingSafeEqual(hashToken(token), tokenHash ?? DUMMY_HASH)
}
