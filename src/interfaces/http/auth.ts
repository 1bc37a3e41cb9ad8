import { StoreUnavailableError } from '../../core/model/errors.ts'
import {
  accessFailed,
  accessTimedOut,
  forbidden,
  misdirected,
  notLocal,
  readOnly,
  tokenInAddress,
  tooManyRequests,
  unauthorized,
  wrongOrigin,
  wrongToken,
  type Login,
} from './http-error.ts'
import { HttpError } from '../../lib/http/errors.ts'
import type { Peer } from '../../lib/http/node-adapter.ts'
import { isForwarded, lastEntry, publicOrigin, isLoopback } from '../../lib/http/host-check.ts'
import { RateLimit } from '../../lib/http/limits.ts'
import { ROLES, type Role } from '../../lib/http/role.ts'
import type { Caller } from '../../contracts/route.ts'
import {
  sessionCookie,
  readSessionCookie,
  type CookieScope,
  type SessionManager,
} from './sessions.ts'
import { LOCAL_NAME, type TokenFile } from '../../app/tokens.ts'

/** Authenticates a request by the sessions of the surrounding server. Returns null to deny access. */
export type Access = (
  request: Request,
) => User | null | undefined | Promise<User | null | undefined>

/** A user of the dashboard and the API. */
export type User = {
  /** For the audit trail. */
  readonly name: string
  /** What the user may do. */
  readonly role: Role
}

export type AuthOptions = {
  readonly tokens: TokenFile | null
  readonly access?: Access | undefined
  /** The login page of the application that decides with `access`. */
  readonly loginUrl?: string | undefined
  /** A shorter timeout, for tests. */
  readonly accessTimeoutMs?: number
  /** Only this machine can reach the server: local callers are admin until there is a token. */
  readonly isPrivate: boolean
  /** Null: the surrounding server checks the Host header. */
  readonly isKnownHost: ((host: string) => boolean) | null
  /** X-Forwarded-For and -Proto are set by a proxy, not by the caller. */
  readonly trustProxy: boolean
  readonly readOnly: boolean
  /** The path of the session cookie. */
  readonly path: string
}

const MINUTE_MS = 60_000
const ACCESS_TIMEOUT_MS = 10_000
/** Streams are re-checked every 3 s and must end within 5 s after access was removed. */
const RECHECK_TIMEOUT_MS = 1_000
const LOGINS_MAX = 5
const MUTATIONS_MAX = 60
const NAME_MAX = 200
const BEARER = /^Bearer +([\x21-\x7e]{1,512})$/i

/** Authentication and authorization of every call: dashboard, API, streams, metrics. Access is denied by default. */
export class Auth {
  readonly #options: AuthOptions
  readonly #sessions: SessionManager
  readonly #logins = new RateLimit(LOGINS_MAX, MINUTE_MS)
  readonly #mutations = new RateLimit(MUTATIONS_MAX, MINUTE_MS)

  constructor(options: AuthOptions, sessions: SessionManager) {
    this.#options = options
    this.#sessions = sessions
  }

  get readOnly(): boolean {
    return this.#options.readOnly
  }

  get #login(): Login {
    const { access, tokens, loginUrl = null } = this.#options
    return {
      by: [...(access ? ['access' as const] : []), ...(tokens ? ['token' as const] : [])],
      url: loginUrl,
    }
  }

  checkHost(request: Request): void {
    const { isKnownHost } = this.#options
    if (isKnownHost && !isKnownHost(request.headers.get('host') ?? '')) throw misdirected()
  }

  /** Returns the caller. Throws if it is not authenticated, or if a page of another site sent the request. */
  async identify(request: Request, peer: Peer): Promise<Caller> {
    if (new URL(request.url).searchParams.has('token')) throw tokenInAddress(this.#login)
    const caller = await this.#callerOf(request, peer)
    if (!caller)
      throw this.#isOpenToLocal() && isForwarded(request) ? notLocal() : unauthorized(this.#login)
    if (!hasExplicitCredentials(request, caller)) checkOrigin(request, this.#originOf(request))
    peer.trust?.()
    return caller
  }

  requireRole(caller: Caller, needed: Role): void {
    if (!hasRole(caller.role, needed)) throw forbidden(needed, caller)
  }

  /** Throws if the caller makes too many changes, or the server is read-only. */
  checkMutation(caller: Caller): void {
    const tooMany = this.#mutations.take(`${caller.by} ${caller.name}`)
    if (tooMany) {
      const httpError = tooManyRequests(tooMany.afterSeconds, 'changes at once')
      throw tooMany.isFirst ? httpError : new UnrecordedError(httpError)
    }
    if (this.#options.readOnly) throw readOnly()
  }

  /** Returns whether a caller that was let in would be let in now. Bounded in time. */
  async isStillAllowed(
    { request, peer }: { readonly request: Request; readonly peer: Peer },
    caller: Caller,
    needed: Role,
  ): Promise<boolean> {
    try {
      const slow = (): Error => new StoreUnavailableError('The check took too long.')
      const found = await withTimeout(RECHECK_TIMEOUT_MS, this.#callerOf(request, peer), slow)
      return found !== null && hasRole(found.role, needed)
    } catch (error) {
      // Without the database the session cannot be read; the token can still be checked.
      if (caller.by !== 'cookie' || !(error instanceof StoreUnavailableError)) return false
      const tokens = this.#options.tokens?.all() ?? []
      return tokens.some(({ name, role }) => name === caller.name && hasRole(role, needed))
    }
  }

  /** Starts a session for the holder of a token. Returns the caller, and the cookie to set. */
  async logIn(
    request: Request,
    peer: Peer,
    secret: string,
  ): Promise<{ caller: Caller; cookie: string }> {
    checkOrigin(request, this.#originOf(request))
    const address = this.addressOf(request, peer)
    // 256 bits cannot be guessed, so local callers are not limited.
    const isLocal = isLoopback(address ?? '') && !isForwarded(request)
    const token = this.#options.tokens?.find(secret)
    const tooMany =
      (isLocal ? null : this.#logins.take(address ?? '')) ??
      (token ? this.#mutations.take(`cookie ${token.name}`) : null)
    if (tooMany) throw tooManyRequests(tooMany.afterSeconds, 'attempts to log in')
    if (!token) throw wrongToken(this.#login)
    const before = this.#sessionIn(request)
    if (before !== null) await this.#sessions.end(before)
    const cookie = sessionCookie(await this.#sessions.create(token), this.#scopeOf(request))
    return { caller: { name: token.name, role: token.role, address, by: 'cookie' }, cookie }
  }

  /** Ends the session. Returns the cookie to set. */
  async logOut(request: Request): Promise<string> {
    checkOrigin(request, this.#originOf(request))
    const session = this.#sessionIn(request)
    if (session !== null) await this.#sessions.end(session)
    return sessionCookie(null, this.#scopeOf(request))
  }

  async #callerOf(request: Request, peer: Peer): Promise<Caller | null> {
    const { tokens, access } = this.#options
    const address = this.addressOf(request, peer)
    const secret = BEARER.exec(request.headers.get('authorization') ?? '')?.[1]
    const byToken = secret === undefined ? null : tokens?.find(secret)
    if (byToken) return { name: byToken.name, role: byToken.role, address, by: 'token' }
    const session = tokens ? this.#sessionIn(request) : null
    const bySession =
      session === null ? null : await this.#sessions.find(session, () => tokens!.all())
    if (bySession) return { name: bySession.name, role: bySession.role, address, by: 'cookie' }
    if (access) return toCaller(await this.#callAccess(access, request), address)
    if (this.#isOpenToLocal() && !isForwarded(request)) {
      return { name: LOCAL_NAME, role: 'admin', address, by: 'local' }
    }
    return null
  }

  /** Calls the user's function, which may throw, or never return. */
  async #callAccess(access: Access, request: Request): Promise<User | null | undefined> {
    const ms = this.#options.accessTimeoutMs ?? ACCESS_TIMEOUT_MS
    const late = accessTimedOut(ms)
    try {
      return await withTimeout(ms, Promise.try(access, request), () => late)
    } catch (error) {
      throw error === late ? late : accessFailed(error)
    }
  }

  /** Returns true if requests from this machine need no token. */
  #isOpenToLocal(): boolean {
    const { isPrivate, tokens, access } = this.#options
    return isPrivate && !access && tokens?.isEmpty() === true
  }

  /** Returns the caller's address: of the connection, or as a trusted proxy forwards it. */
  addressOf({ headers }: Request, peer: Peer): string | null {
    const forwarded = this.#options.trustProxy ? lastEntry(headers.get('x-forwarded-for')) : null
    return (forwarded ?? peer.address ?? null)?.replace(/^::ffff:/, '').slice(0, 64) ?? null
  }

  #originOf(request: Request): URL | null {
    return publicOrigin(request, this.#options.trustProxy)
  }

  #scopeOf(request: Request): CookieScope {
    return { origin: this.#originOf(request), path: this.#options.path }
  }

  #sessionIn(request: Request): string | null {
    return readSessionCookie(request.headers.get('cookie'), this.#scopeOf(request))
  }
}

/** A refusal that is not recorded, because the first of the burst was. */
export class UnrecordedError extends HttpError {
  constructor({ status, code, message, headers }: HttpError) {
    super(status, code, message, { headers })
  }
}

/** Returns true for credentials in a header that no browser adds by itself. */
function hasExplicitCredentials({ headers }: Request, { by }: Caller): boolean {
  return by === 'token' || (by === 'access' && BEARER.test(headers.get('authorization') ?? ''))
}

/**
 * Throws for requests of other sites' pages. A browser sends cookies, and reaches local addresses, for any page; it reports
 * the page's origin in Sec-Fetch-Site, and in Origin, which older browsers send with changes. `own`: this server's origin.
 */
function checkOrigin({ method, headers }: Request, own: URL | null): void {
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  const isOurs = site === 'same-origin' || site === 'none'
  if (method === 'GET' || method === 'HEAD') {
    const isNavigation = headers.get('sec-fetch-mode') === 'navigate'
    if (site !== null && !isOurs && !isNavigation) throw wrongOrigin()
    return
  }
  if (site !== null && !isOurs) throw wrongOrigin()
  if (origin !== null && origin.toLowerCase() !== own?.origin) throw wrongOrigin()
  if (site === null && origin === null) throw wrongOrigin()
}

function toCaller(user: User | null | undefined, address: string | null): Caller | null {
  if (!user) return null
  const { name, role } = user
  if (!ROLES.includes(role) || typeof name !== 'string' || name === '') return null
  return { name: name.slice(0, NAME_MAX), role, address, by: 'access' }
}

function hasRole(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** Rejects with an error of `makeError` if the promise does not settle in time. */
async function withTimeout<T>(ms: number, promise: Promise<T>, makeError: () => Error): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(makeError()), ms)
  // A later rejection is of no use to the caller.
  promise.catch(() => {})
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
