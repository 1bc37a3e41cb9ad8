import {
  forbidden,
  HttpRefusal,
  misdirected,
  notLocal,
  readOnly,
  tokenInAddress,
  tooManyRequests,
  unauthorized,
  wrongOrigin,
} from './refusal.ts'
import { isForwarded, lastOf, publicOrigin } from './forwarding.ts'
import { RateLimit } from './rate-limit.ts'
import { ROLES, type Caller, type Role } from './route.ts'
import { openSession, sealSession, sessionCookie, sessionIn } from './session-cookie.ts'
import type { TokenBook } from './token-book.ts'
import { isLoopback } from './host-check.ts'
import { LOCAL_NAME } from './tokens.ts'

/** What the server around a request knows of whoever sent it. */
export type Peer = {
  readonly address?: string | null
  /** It has shown that it may call: its connection is not the first to go when there are too many. */
  readonly trust?: () => void
  /** The path of the request is the one that was sent: no server around us took the base path off. */
  readonly hasWholePath?: boolean
}

/** How a server of the user's own tells who is calling; null for nobody. */
export type Access = (
  request: Request,
) => Visitor | null | undefined | Promise<Visitor | null | undefined>
export type Visitor = { readonly name: string; readonly role: Role }

export type GateOptions = {
  readonly tokens: TokenBook | null
  readonly access?: Access | undefined
  /** Only this machine reaches it, by its own names: then everybody may do everything until there is a token. */
  readonly isPrivate: boolean
  /** Null: the server around us has seen to it. */
  readonly isKnownHost: ((host: string) => boolean) | null
  /** X-Forwarded-For and -Proto are the word of a proxy in front, and not of the caller. */
  readonly trustProxy: boolean
  readonly readOnly: boolean
  /** Of the session's cookie. */
  readonly path: string
}

const MINUTE_MS = 60_000
const LOGINS_MAX = 5
const CHANGES_MAX = 60
const NAME_MAX = 200
const BEARER = /^Bearer +([\x21-\x7e]{1,512})$/i

/** The one gate that everything passes: dashboard, API, streams, metrics. Closed unless something opens it. */
export class Gate {
  readonly #options: GateOptions
  readonly #logins = new RateLimit(LOGINS_MAX, MINUTE_MS)
  readonly #changes = new RateLimit(CHANGES_MAX, MINUTE_MS)

  constructor(options: GateOptions) {
    this.#options = options
  }

  get readOnly(): boolean {
    return this.#options.readOnly
  }

  checkHost(request: Request): void {
    const { isKnownHost } = this.#options
    if (isKnownHost && !isKnownHost(request.headers.get('host') ?? '')) throw misdirected()
  }

  /** Who is calling. Refuses those who cannot say, and web pages that call in their visitor's name. */
  async identify(request: Request, peer: Peer): Promise<Caller> {
    if (new URL(request.url).searchParams.has('token')) throw tokenInAddress()
    const caller = await this.#callerOf(request, peer)
    if (!caller) throw this.#isOpenToLocal() && isForwarded(request) ? notLocal() : unauthorized()
    if (!isSentOnPurpose(request, caller)) checkOrigin(request, this.#originOf(request))
    peer.trust?.()
    return caller
  }

  checkRole(caller: Caller, needed: Role): void {
    if (!isEnough(caller.role, needed)) throw forbidden(needed, caller.role)
  }

  /** Before anything is changed. */
  checkChange(caller: Caller): void {
    const tooMany = this.#changes.take(`${caller.by} ${caller.name}`)
    if (tooMany) {
      const refusal = tooManyRequests(tooMany.afterSeconds, 'changes at once')
      throw tooMany.isFirst ? refusal : new Unrecorded(refusal)
    }
    if (this.#options.readOnly) throw readOnly()
  }

  /** Whether who was let in would be let in now. */
  async isStillAllowed(request: Request, peer: Peer, needed: Role): Promise<boolean> {
    const caller = await this.#callerOf(request, peer)
    return caller !== null && isEnough(caller.role, needed)
  }

  /** A session for whoever has a token: the caller, and the cookie to set. */
  logIn(request: Request, peer: Peer, secret: string): { caller: Caller; cookie: string } {
    checkOrigin(request, this.#originOf(request))
    const address = this.#addressOf(request, peer)
    // 256 bits cannot be guessed, so that nobody need be locked out of their own machine.
    const isLocal = isLoopback(address ?? '') && !isForwarded(request)
    const tooMany = isLocal ? null : this.#logins.take(address ?? '')
    if (tooMany) throw tooManyRequests(tooMany.afterSeconds, 'attempts to log in')
    const token = this.#options.tokens?.find(secret)
    if (!token) throw wrongToken()
    const cookie = sessionCookie(sealSession(token), this.#cookieOf(request))
    return { caller: { name: token.name, role: token.role, address, by: 'cookie' }, cookie }
  }

  /** The cookie that ends a session. */
  logOut(request: Request): string {
    checkOrigin(request, this.#originOf(request))
    return sessionCookie(null, this.#cookieOf(request))
  }

  async #callerOf(request: Request, peer: Peer): Promise<Caller | null> {
    const { tokens, access } = this.#options
    const address = this.#addressOf(request, peer)
    const secret = BEARER.exec(request.headers.get('authorization') ?? '')?.[1]
    const byToken = secret === undefined ? null : tokens?.find(secret)
    if (byToken) return { name: byToken.name, role: byToken.role, address, by: 'token' }
    const session = sessionIn(request.headers.get('cookie'))
    const bySession = session && tokens ? openSession(session, tokens.all()) : null
    if (bySession) return { name: bySession.name, role: bySession.role, address, by: 'cookie' }
    if (access) return asCaller(await access(request), address)
    if (this.#isOpenToLocal() && !isForwarded(request)) {
      return { name: LOCAL_NAME, role: 'admin', address, by: 'local' }
    }
    return null
  }

  /** Whether requests from this machine need no token. */
  #isOpenToLocal(): boolean {
    const { isPrivate, tokens, access } = this.#options
    return isPrivate && !access && tokens?.isEmpty() === true
  }

  #addressOf({ headers }: Request, peer: Peer): string | null {
    const forwarded = this.#options.trustProxy ? lastOf(headers.get('x-forwarded-for')) : null
    return (forwarded ?? peer.address ?? null)?.replace(/^::ffff:/, '').slice(0, 64) ?? null
  }

  #originOf(request: Request): URL | null {
    return publicOrigin(request, this.#options.trustProxy)
  }

  #cookieOf(request: Request): { path: string; isSecure: boolean } {
    return {
      path: this.#options.path,
      isSecure: this.#originOf(request)?.protocol === 'https:',
    }
  }
}

/** One of a burst: that it began is written down, and that is enough. */
export class Unrecorded extends HttpRefusal {
  constructor({ status, code, message, headers }: HttpRefusal) {
    super(status, code, message, { headers })
  }
}

function wrongToken(): HttpRefusal {
  return new HttpRefusal(
    401,
    'UNAUTHORIZED',
    'This is not a token of this server, or no longer. `unstuck tokens list` shows their names, `unstuck tokens add NAME` makes one.',
  )
}

/** With a header that no browser sends along by itself, whoever wrote the page. */
function isSentOnPurpose({ headers }: Request, { by }: Caller): boolean {
  return by === 'token' || (by === 'access' && BEARER.test(headers.get('authorization') ?? ''))
}

/**
 * A browser sends cookies along, and reaches this machine's own addresses, whoever wrote the page that it shows. Where
 * the request comes from, it says itself: in Sec-Fetch-Site, and in Origin, which older ones send with changes. `own`: the
 * origin under which browsers see this server.
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

function asCaller(visitor: Visitor | null | undefined, address: string | null): Caller | null {
  if (!visitor) return null
  const { name, role } = visitor
  if (!ROLES.includes(role) || typeof name !== 'string' || name === '') return null
  return { name: name.slice(0, NAME_MAX), role, address, by: 'access' }
}

function isEnough(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}
