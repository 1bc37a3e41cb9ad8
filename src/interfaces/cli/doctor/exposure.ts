import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { formatMode, TRUSTED_FOLDERS, untrustedReason } from '../../../core/host/trusted-path.ts'
import { plural } from '../../../presenters/format.ts'
import { tokensPath } from '../../../app/tokens.ts'
import { firstOf, note, ok, problem, type Finding } from '../../../presenters/finding.ts'

/** A file or folder of ours that others than its owner can get at. */
export type Exposed = { readonly path: string; readonly mode: number }

/** Of each folder with many files, as many as anybody will read about. */
const ENTRIES_MAX = 10_000
const OTHERS_READ = 0o044
const OTHERS_WRITE = 0o022
const GROUP_WRITES = 0o020

/** Every file and folder that Unstuck makes: database, locks, journals, tokens, what commands printed. */
export type OwnFiles = { readonly files: readonly string[]; readonly folders: readonly string[] }

export function listOwnFiles(address: string | null, data: string): OwnFiles {
  const database = address?.startsWith('sqlite:') ? address.slice('sqlite:'.length) : null
  const folders = [join(data, 'journal'), ...(database === null ? [] : [`${database}-workers`])]
  const runs = list(join(data, 'runs'))
  const files = [
    ...(database === null ? [] : [database, `${database}-wal`, `${database}-shm`]),
    tokensPath(data),
    ...folders.flatMap(list),
    ...runs.flatMap((run) => list(run).filter((path) => /\boutput\.log[^/]*$/.test(path))),
  ]
  return { files, folders: [data, ...folders, ...runs] }
}

/** What was made for its owner alone, and is not so any more. */
export function exposedFiles({ files, folders }: OwnFiles): Exposed[] {
  return [
    ...files.flatMap((path) => exposed(path, OTHERS_READ | OTHERS_WRITE)),
    ...folders.flatMap((path) => exposed(path, OTHERS_WRITE)),
  ]
}

function exposed(path: string, bits: number): Exposed[] {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  // A link has no rights of its own, and none of our files is one.
  if (!stats || stats.isSymbolicLink()) return []
  // Many systems give each user a group with nobody else in it, and let it write.
  const counted = stats.gid === stats.uid ? bits & ~GROUP_WRITES : bits
  if ((stats.mode & counted) === 0) return []
  return [{ path, mode: stats.mode & 0o777 }]
}

export function filesFinding(found: readonly Exposed[], platform = process.platform): Finding {
  if (platform === 'win32') {
    return note('files', 'Not looked at: this system has no file modes.', {
      why: 'Who may read the database and the tokens is a matter of the folder they are in.',
    })
  }
  if (found.length === 0) return ok('files', 'Database, journals and tokens are for their owner.')
  return problem('files', `${plural(found.length, 'file')} or folders are open to others.`, {
    details: firstOf(found.map(({ path, mode }) => `${path} (mode ${formatMode(mode)})`)),
    why: 'Other users of this machine can read what was saved, or change what unstuck believes.',
    mend: 'Take the rights away: `chmod go-rwx` and their names.',
  })
}

/** What another user made in a place where Unstuck would believe or write to it. A folder that was named is trusted. */
export function ownersFinding(
  { files, folders }: OwnFiles,
  data: { readonly folder: string; readonly isNamed: boolean },
): Finding {
  const checked = [...folders, ...files].filter((path) => path !== data.folder || !data.isNamed)
  const foreign = new Set(
    checked.flatMap((path) => {
      const isWithin = path !== data.folder && path !== tokensPath(data.folder)
      return untrustedReason(path, isWithin ? { within: data.folder } : {}) ?? []
    }),
  )
  if (foreign.size === 0) return ok('owners', 'No other user can have put a file there.')
  return problem('owners', 'Another user can have written what unstuck would go by.', {
    details: firstOf([...foreign]),
    why: 'Such files are not used: a token, a lock or a database of another user acts in your name.',
    mend: `Change the owner or the mode, or name the folder in ${TRUSTED_FOLDERS} if you trust it.`,
  })
}

function list(folder: string): string[] {
  try {
    const names = readdirSync(folder).slice(0, ENTRIES_MAX)
    return names.map((name) => join(folder, name))
  } catch {
    return []
  }
}
