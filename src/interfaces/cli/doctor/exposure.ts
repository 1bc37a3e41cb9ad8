import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { formatMode, TRUSTED_FOLDERS, untrustedReason } from '../../../core/host/trusted-path.ts'
import { plural } from '../../../presenters/format.ts'
import { tokensPath } from '../../../app/tokens.ts'
import { firstOf, note, ok, problem, type Finding } from '../../../presenters/finding.ts'

/** A file or folder of Unstuck that other users can access. */
export type Exposed = { readonly path: string; readonly mode: number }

/** Entries of a folder that are checked. */
const ENTRIES_MAX = 10_000
const OTHERS_READ = 0o044
const OTHERS_WRITE = 0o022
const GROUP_WRITES = 0o020

/** The files and folders that Unstuck creates: database, locks, journals, tokens, output of commands. */
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

/** Returns the files that were created for their owner only and no longer are. */
export function exposedFiles({ files, folders }: OwnFiles): Exposed[] {
  return [
    ...files.flatMap((path) => exposed(path, OTHERS_READ | OTHERS_WRITE)),
    ...folders.flatMap((path) => exposed(path, OTHERS_WRITE)),
  ]
}

function exposed(path: string, bits: number): Exposed[] {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  // A link has no mode of its own, and none of these files is a link.
  if (!stats || stats.isSymbolicLink()) return []
  // Many systems give each user a private group with write access.
  const counted = stats.gid === stats.uid ? bits & ~GROUP_WRITES : bits
  if ((stats.mode & counted) === 0) return []
  return [{ path, mode: stats.mode & 0o777 }]
}

export function filesFinding(found: readonly Exposed[], platform = process.platform): Finding {
  if (platform === 'win32') {
    return note('files', 'Not checked: this system has no file modes.', {
      why: 'The folder decides which users can read the database and the tokens.',
    })
  }
  if (found.length === 0)
    return ok('files', 'Only their owner can read database, journals and tokens.')
  return problem('files', `${plural(found.length, 'file')} or folders are open to other users.`, {
    details: firstOf(found.map(({ path, mode }) => `${path} (mode ${formatMode(mode)})`)),
    why: 'Other users of this machine can read the data or change it.',
    fix: '`chmod go-rwx` and their names.',
  })
}

/** Checks that no other user can have written files that Unstuck reads. A folder that was named explicitly is trusted. */
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
  if (foreign.size === 0) return ok('owners', 'No other user can have written these files.')
  return problem('owners', 'Another user can have written files that Unstuck reads.', {
    details: firstOf([...foreign]),
    why: 'Such files are not used: a token, a lock or a database of another user would act in your name.',
    fix: `Change the owner or the mode, or name the folder in ${TRUSTED_FOLDERS} if you trust it.`,
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
