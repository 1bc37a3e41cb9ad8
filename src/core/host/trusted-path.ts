import { lstatSync, realpathSync, statSync, type Stats } from 'node:fs'
import { basename, delimiter, dirname, join, resolve, sep } from 'node:path'
import process from 'node:process'
import { UsageError } from '../model/errors.ts'

/** Folders whose owners and modes are not checked: the user vouches for them, as with git's safe.directory. */
export const TRUSTED_FOLDERS = 'UNSTUCK_TRUSTED_FOLDERS'
const STICKY = 0o1000
const OTHERS_WRITE = 0o002
const GROUP_WRITES = 0o020

type TrustOptions = {
  /** A folder that the user named. Only what is below it is checked, and its owner and group are trusted too. */
  readonly within?: string
}

/**
 * Returns why another user could have written this file or folder, or null if only this user and root could.
 * Checks it and every folder above, also behind links. What is not there is not checked. Always null on Windows.
 */
export function untrustedReason(path: string, { within }: TrustOptions = {}): string | null {
  const uid = process.geteuid?.()
  if (uid === undefined || isInTrustedFolder(path)) return null
  const withinStats = within === undefined ? undefined : statSync(within, { throwIfNoEntry: false })
  const trusted = {
    users: new Set([0, uid, ...sudoUser(uid), ...(withinStats ? [withinStats.uid] : [])]),
    groups: new Set([uid, ...(withinStats ? [withinStats.gid] : [])]),
  }
  const whole = resolve(path)
  const ends = within === undefined ? [] : [resolve(within), resolveLinks(resolve(within))]
  for (const start of new Set([whole, resolveLinks(whole)])) {
    for (let entry = start; !ends.includes(entry); entry = dirname(entry)) {
      const why = foreignWriterReason(entry, { ...trusted, isAbove: entry !== start })
      if (why !== null) return why
      if (entry === dirname(entry)) break
    }
  }
  return null
}

/** Throws unless only this user and root could have written the file. `what`: its use, for the message. */
export function assertTrusted(path: string, what: string, options: TrustOptions = {}): void {
  const why = untrustedReason(path, options)
  if (why === null) return
  throw new UsageError(
    `${path} is not used as ${what}: ${why}. ` +
      `Change its owner or mode, or run this as its owner; if you trust it, name the folder in ${TRUSTED_FOLDERS}.`,
  )
}

type TrustedWriters = {
  readonly users: ReadonlySet<number>
  readonly groups: ReadonlySet<number>
  readonly isAbove: boolean
}

function foreignWriterReason(
  entry: string,
  { users, groups, isAbove }: TrustedWriters,
): string | null {
  const stats = statsOf(entry)
  if (!stats) return null
  const { uid, gid, mode } = stats
  if (!users.has(uid)) return `${entry} belongs to another user (uid ${uid})`
  // A link has no mode of its own. In a sticky folder such as /tmp only the owner can replace an entry.
  if (stats.isSymbolicLink() || (isAbove && (mode & STICKY) !== 0)) return null
  // By convention a group with the number of its user has no other member.
  const isOwnGroup = gid === uid || groups.has(gid)
  const writers = OTHERS_WRITE | (isOwnGroup ? 0 : GROUP_WRITES)
  if ((mode & writers) === 0) return null
  return `${entry} can be changed by other users (mode ${formatMode(mode)})`
}

/** Returns null also if the path is not accessible: then it cannot be read either. */
function statsOf(entry: string): Stats | null {
  try {
    return lstatSync(entry)
  } catch {
    return null
  }
}

/** Returns the permissions of a mode as `chmod` takes them. */
export function formatMode(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0')
}

/** Under sudo, root acts for the calling user. */
function sudoUser(me: number): number[] {
  const uid = Number(process.env['SUDO_UID'] || Number.NaN)
  return me === 0 && Number.isInteger(uid) ? [uid] : []
}

function isInTrustedFolder(path: string): boolean {
  const folders = (process.env[TRUSTED_FOLDERS] ?? '').split(delimiter).filter(Boolean)
  const real = resolveLinks(resolve(path))
  return folders.some((folder) => isWithin(real, resolveLinks(resolve(folder))))
}

/** Returns whether a path is this folder or below it. Both are absolute and without links. */
export function isWithin(path: string, folder: string): boolean {
  return `${path}${sep}`.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`)
}

/** Resolves links, as far as the path exists. */
export function resolveLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path === dirname(path) ? path : join(resolveLinks(dirname(path)), basename(path))
  }
}
