import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Token } from '../../app/tokens.ts'
import type { NewSession, Session, SessionStore } from '../../features/access/store/store.ts'

const SESSION_TTL_MS = 24 * 3_600_000
/** 256 bits in base64url. */
const SECRET = /^[\w-]{43}$/

/** Sessions of browsers. Each is a random secret that only the browser has, bound to the token of its login. */
export class SessionManager {
  readonly #open: () => Promise<SessionStore>
  /** Lookups under way, shared by concurrent calls of one session. */
  readonly #pending = new Map<string, Promise<Session | null>>()

  constructor(open: () => Promise<SessionStore>) {
    this.#open = open
  }

  /** Starts a session. Returns the secret for the browser's cookie. */
  async create(token: Token): Promise<string> {
    const secret = randomBytes(32).toString('base64url')
    const store = await this.#open()
    await store.createSession({
      id: idOf(secret),
      token: token.name,
      tokenMark: tokenMarkOf(secret, token),
      lastsMs: SESSION_TTL_MS,
    })
    return secret
  }

  /** Returns the token of a session; null if the session ended or expired, or its token was removed. */
  async find(secret: string, tokens: () => readonly Token[]): Promise<Token | null> {
    if (!SECRET.test(secret)) return null
    const session = await this.#load(idOf(secret))
    const token = tokens().find(({ name }) => name === session?.token)
    if (!session || !token) return null
    const isSame = timingSafeEqual(
      Buffer.from(hash('sha256', session.tokenMark)),
      Buffer.from(hash('sha256', tokenMarkOf(secret, token))),
    )
    return isSame ? token : null
  }

  async end(secret: string): Promise<void> {
    if (SECRET.test(secret)) await (await this.#open()).deleteSession(idOf(secret))
  }

  #load(id: string): Promise<Session | null> {
    const pending =
      this.#pending.get(id) ??
      this.#open()
        .then((store) => store.session(id))
        .finally(() => this.#pending.delete(id))
    this.#pending.set(id, pending)
    return pending
  }
}

function idOf(secret: string): string {
  return hash('sha256', secret)
}

/** Derived from the secret and the token's hash, so that the database reveals nothing about a token. */
function tokenMarkOf(secret: string, token: Token): string {
  return hash('sha256', `${secret}.${token.hash}`)
}

const SESSIONS_MAX = 1_000

/** For a read-only server, whose database login may not write. Sessions end with the process. */
export class InMemorySessionStore implements SessionStore {
  readonly #sessions = new Map<string, Session>()

  async createSession({ lastsMs, ...session }: NewSession): Promise<void> {
    const createdAt = Date.now()
    this.#sessions.set(session.id, { ...session, createdAt, expiresAt: createdAt + lastsMs })
    const [oldest] = this.#sessions.keys()
    if (this.#sessions.size > SESSIONS_MAX) this.#sessions.delete(oldest!)
  }

  async session(id: string): Promise<Session | null> {
    const found = this.#sessions.get(id)
    return found && found.expiresAt > Date.now() ? found : null
  }

  async deleteSession(id: string): Promise<boolean> {
    return this.#sessions.delete(id)
  }
}

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
