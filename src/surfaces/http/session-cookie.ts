import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Token } from './tokens.ts'

export const COOKIE = 'unstuck_session'
const LASTS_SECONDS = 24 * 3_600

/** What a browser keeps of a token: its name and an end, sealed with the token's hash. It ends with its token. */
export function sealSession({ name, hash }: Token, now: number = Date.now()): string {
  const until = Math.floor(now / 1_000) + LASTS_SECONDS
  const said = `${Buffer.from(name).toString('base64url')}.${until}`
  return `${said}.${seal(said, hash)}`
}

/** The token that a session stands for; null when there is none, it was taken away, or the session is over. */
export function openSession(
  value: string,
  tokens: readonly Token[],
  now: number = Date.now(),
): Token | null {
  const [, said = '', id = '', until = '', mark = ''] =
    /^(([\w-]{1,200})\.(\d{1,12}))\.([\w-]{43})$/.exec(value) ?? []
  const name = Buffer.from(id, 'base64url').toString()
  const token = tokens.find((one) => one.name === name)
  if (!token || Number(until) * 1_000 <= now) return null
  const right = Buffer.from(seal(said, token.hash))
  return timingSafeEqual(right, Buffer.from(mark)) ? token : null
}

/** For the Set-Cookie header. Null ends it. */
export function sessionCookie(
  value: string | null,
  { path, isSecure }: { path: string; isSecure: boolean },
): string {
  const age = value === null ? 0 : LASTS_SECONDS
  const parts = [`${COOKIE}=${value ?? ''}`, `Path=${path}`, `Max-Age=${age}`, 'HttpOnly']
  return [...parts, 'SameSite=Strict', ...(isSecure ? ['Secure'] : [])].join('; ')
}

/** The session among a request's cookies. */
export function sessionIn(header: string | null): string | null {
  for (const pair of (header ?? '').split(';')) {
    const [name, value] = pair.trim().split('=', 2)
    if (name === COOKIE && value) return value
  }
  return null
}

function seal(said: string, hash: string): string {
  return createHmac('sha256', Buffer.from(hash, 'hex')).update(said).digest('base64url')
}
