import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { dataFolder } from '../../../runtime/command/folder.ts'
import { plural } from '../paper/words.ts'
import { tokensPath } from '../../http/tokens.ts'
import { firstFew, note, ok, problem, type Finding } from './finding.ts'

/** A file or folder of ours that others than its owner can get at. */
export type Exposed = { readonly path: string; readonly mode: number }

/** Of each folder with many files, as many as anybody will read about. */
const ENTRIES_MAX = 10_000
const OTHERS_READ = 0o044
export const OTHERS_WRITE = 0o022
const GROUP_WRITES = 0o020

/** What was made for its owner alone, and is not so any more: database, locks, journals, tokens, what commands printed. */
export function exposedFiles(address: string | null, cwd: string): Exposed[] {
  const data = dataFolder(address ?? '', cwd)
  const database = address?.startsWith('sqlite:') ? address.slice('sqlite:'.length) : null
  const folders = [join(data, 'journal'), ...(database === null ? [] : [`${database}-workers`])]
  const runs = list(join(data, 'runs'))
  const files = [
    ...(database === null ? [] : [database, `${database}-wal`, `${database}-shm`]),
    tokensPath(data),
    ...folders.flatMap(list),
    ...runs.flatMap((run) => list(run).filter((path) => /\boutput\.log[^/]*$/.test(path))),
  ]
  return [
    ...files.flatMap((path) => exposed(path, OTHERS_READ | OTHERS_WRITE)),
    ...[data, ...folders, ...runs].flatMap((path) => exposed(path, OTHERS_WRITE)),
  ]
}

export function exposed(path: string, bits: number): Exposed[] {
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
    details: firstFew(found.map(({ path, mode }) => `${path} (mode ${inOctal(mode)})`)),
    why: 'Other users of this machine can read what was saved, or change what unstuck believes.',
    mend: 'Take the rights away: `chmod go-rwx` and their names.',
  })
}

export function inOctal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}

function list(folder: string): string[] {
  try {
    const names = readdirSync(folder).slice(0, ENTRIES_MAX)
    return names.map((name) => join(folder, name))
  } catch {
    return []
  }
}
