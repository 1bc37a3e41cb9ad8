import { hash, timingSafeEqual } from 'node:crypto'
import { statSync } from 'node:fs'
import { messageOf, UsageError } from '../core/model/errors.ts'
import { ADMIN_NAME, readTokens, type Token } from './tokens.ts'

const ADMIN_TOKEN_LENGTH_MIN = 32

/** The valid tokens: those in the file, which is read again when it changes, and the one from the environment. */
export class TokenFile {
  readonly #path: string | null
  readonly #log: (line: string) => void
  readonly #envTokens: readonly Token[]
  #version = ''
  #tokens: readonly Token[]
  #isReadable = true

  /** `admin`: UNSTUCK_ADMIN_TOKEN. */
  constructor(path: string | null, admin: string | undefined, log: (line: string) => void) {
    this.#path = path
    this.#log = log
    this.#envTokens = admin ? [adminToken(admin)] : []
    this.#tokens = this.#envTokens
  }

  all(): readonly Token[] {
    const version = this.#path === null ? '' : versionOf(this.#path)
    if (version !== this.#version) {
      this.#version = version
      this.#tokens = [...this.#read(), ...this.#envTokens]
    }
    return this.#tokens
  }

  /** Returns true if there are no tokens. An unreadable file does not count as empty. */
  isEmpty(): boolean {
    return this.all().length === 0 && this.#isReadable
  }

  /** Returns the token with this secret, or null. Compares every token in constant time. */
  find(secret: string): Token | null {
    const given = hash('sha256', secret, 'buffer')
    let found: Token | null = null
    for (const one of this.all()) {
      if (timingSafeEqual(given, Buffer.from(one.hash, 'hex'))) found = one
    }
    return found
  }

  /** Reads the file. An unreadable file counts as no valid token. */
  #read(): Token[] {
    try {
      const tokens = readTokens(this.#path!)
      this.#isReadable = true
      return tokens
    } catch (error) {
      this.#isReadable = false
      this.#log(messageOf(error))
      return []
    }
  }
}

function versionOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats ? [stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs].join(' ') : ''
}

/** A chosen token is not random, so it has a minimum length. */
export function isLongEnough(secret: string): boolean {
  return secret.length >= ADMIN_TOKEN_LENGTH_MIN
}

function adminToken(secret: string): Token {
  if (!isLongEnough(secret)) {
    throw new UsageError(
      `UNSTUCK_ADMIN_TOKEN is shorter than ${ADMIN_TOKEN_LENGTH_MIN} characters. Make one with \`openssl rand -base64 32\`.`,
    )
  }
  const createdAt = new Date().toISOString()
  return { name: ADMIN_NAME, role: 'admin', hash: hash('sha256', secret), createdAt }
}
