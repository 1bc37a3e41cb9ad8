import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { assertTrusted } from '../core/host/trusted-path.ts'
import { messageOf, UsageError } from '../core/model/errors.ts'
import { ROLES, type Role } from '../lib/http/role.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/
/** The caller's name on a server without tokens. */
export const LOCAL_NAME = 'local'
/** The name of the token in UNSTUCK_ADMIN_TOKEN. */
export const ADMIN_NAME = 'admin-from-environment'
const OTHERS_MODE = 0o077

const token = v.strictObject({
  name: v.pipe(v.string(), v.regex(NAME)),
  role: v.picklist(ROLES),
  /** SHA-256 in hex. A fast hash is enough for 256 random bits. */
  hash: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  createdAt: v.pipe(v.string(), v.isoTimestamp()),
})
const file = v.strictObject({ tokens: v.array(token) })

export type Token = v.InferOutput<typeof token>

/** Returns the path of a database's token file. */
export function tokensPath(dataFolder: string): string {
  return join(dataFolder, 'tokens.json')
}

/** Creates a token and returns it. The file keeps only its hash. */
export function addToken(path: string, name: string, role: Role): string {
  if (!NAME.test(name) || [LOCAL_NAME, ADMIN_NAME].includes(name)) {
    throw new UsageError(
      `${JSON.stringify(name)} cannot be the name of a token: letters, digits and . _ @ - up to 64, and not ${LOCAL_NAME}.`,
    )
  }
  const secret = randomBytes(32).toString('base64url')
  changeTokens(path, (tokens) => {
    if (tokens.some((one) => one.name === name)) {
      throw new UsageError(
        `There is a token ${name} already. Remove it first: ${unstuckCommand('tokens remove', [name])}`,
      )
    }
    const createdAt = new Date().toISOString()
    return [...tokens, { name, role, hash: hash('sha256', secret), createdAt }]
  })
  return secret
}

/** Removes a token; the sessions started with it end too. Returns false if there is no such token. */
export function removeToken(path: string, name: string): boolean {
  let found = false
  changeTokens(path, (tokens) => {
    const left = tokens.filter((one) => one.name !== name)
    found = left.length < tokens.length
    return left
  })
  return found
}

/** Returns the tokens in the file; none without a file. Throws if other users can read or write the file, or it is invalid. */
export function readTokens(path: string): Token[] {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) return []
  assertTrusted(path, 'list of tokens')
  if (process.platform !== 'win32' && (stats.mode & OTHERS_MODE) !== 0) {
    throw new UsageError(`Others can read ${path}. Close it with \`chmod 600 ${path}\`.`)
  }
  try {
    return v.parse(file, JSON.parse(readFileSync(path, 'utf8'))).tokens
  } catch (error) {
    throw new UsageError(
      `${path} is not a list of tokens: ${messageOf(error)}. Fix it, or remove it and create new tokens.`,
      { cause: error },
    )
  }
}

/** Writes a draft and renames it. The draft is also the lock: it is created exclusively. */
function changeTokens(path: string, change: (tokens: Token[]) => Token[]): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.new`
  const fd = openDraft(draft)
  try {
    writeSync(fd, `${JSON.stringify({ tokens: change(readTokens(path)) }, null, 2)}\n`)
    fsyncSync(fd)
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
}

function openDraft(draft: string): number {
  try {
    return openSync(draft, 'wx', 0o600)
  } catch (error) {
    throw new UsageError(
      `The tokens cannot be changed: ${messageOf(error)}. If no other process is changing them, remove ${draft}.`,
      { cause: error },
    )
  }
}

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
