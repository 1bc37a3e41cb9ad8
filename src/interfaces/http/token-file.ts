import { hash, timingSafeEqual } from 'node:crypto'
import { statSync } from 'node:fs'
import { messageOf, UsageError } from '../../core/model/errors.ts'
import { ADMIN_NAME, readTokens, type Token } from './tokens.ts'

const ADMIN_TOKEN_LENGTH_MIN = 32

/** The tokens that count now: the file's, read again whenever it has changed, and the environment's. */
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

  /** Nobody needs one: there is none. A list that cannot be read is not an empty one. */
  isEmpty(): boolean {
    return this.all().length === 0 && this.#isReadable
  }

  /** The token that this is; null when it is none. Every one is compared, each in the same time. */
  find(secret: string): Token | null {
    const given = hash('sha256', secret, 'buffer')
    let found: Token | null = null
    for (const one of this.all()) {
      if (timingSafeEqual(given, Buffer.from(one.hash, 'hex'))) found = one
    }
    return found
  }

  /** Those in the file. One that cannot be read lets nobody in. */
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

/** One that a person made up is not by chance, but at least it is long. */
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
