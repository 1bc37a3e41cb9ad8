import { hash, randomBytes } from 'node:crypto'
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
import { messageOf, UsageError } from '../../core/model/errors.ts'
import { unstuckCommand } from '../../core/model/shell-command.ts'
import { assertTrusted } from '../../core/host/trusted-path.ts'
import { ROLES, type Role } from './route.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/
/** Stands for everybody where there is no token at all. */
export const LOCAL_NAME = 'local'
/** The one from the environment, for containers. */
export const ADMIN_NAME = 'admin-from-environment'
const OTHERS_MODE = 0o077

const token = v.strictObject({
  name: v.pipe(v.string(), v.regex(NAME)),
  role: v.picklist(ROLES),
  /** SHA-256, in hex. What was hashed has 256 random bits, so that a fast hash is enough. */
  hash: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  createdAt: v.pipe(v.string(), v.isoTimestamp()),
})
const file = v.strictObject({ tokens: v.array(token) })

export type Token = v.InferOutput<typeof token>

/** Where the tokens of a database are. */
export function tokensPath(dataFolder: string): string {
  return join(dataFolder, 'tokens.json')
}

/** Makes a token and answers it, once: only its hash is kept. */
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
        `There is a token ${name} already. Take it away first: ${unstuckCommand('tokens remove', [name])}`,
      )
    }
    const createdAt = new Date().toISOString()
    return [...tokens, { name, role, hash: hash('sha256', secret), createdAt }]
  })
  return secret
}

/** Takes it away, with every session that came from it. False when there was none. */
export function removeToken(path: string, name: string): boolean {
  let found = false
  changeTokens(path, (tokens) => {
    const left = tokens.filter((one) => one.name !== name)
    found = left.length < tokens.length
    return left
  })
  return found
}

/**
 * Those in the file; none where there is no file. Refuses one that others can read or could have written, or that is
 * not whole.
 */
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
      `${path} is not a list of tokens: ${messageOf(error)}. Mend it, or remove it and make new tokens.`,
      { cause: error },
    )
  }
}

/** The new file is also the lock: whoever cannot make it waits for somebody else to have put it in place. */
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
      `The tokens cannot be changed: ${messageOf(error)}. If nobody else is at it, remove ${draft}.`,
      { cause: error },
    )
  }
}
