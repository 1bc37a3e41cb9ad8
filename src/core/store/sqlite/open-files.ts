import { statSync, type BigIntStats } from 'node:fs'
import { messageOf, StoreUnavailableError, UnusableStoreError } from '../../model/errors.ts'

type OpenFile = { readonly path: string; readonly id: string }

/**
 * The database file and its -wal file as this process has opened them. SQLite goes on working in files that have lost
 * their names, and what it commits there is lost when the last process closes them. So a read or a commit counts only
 * while both names still lead to the open files.
 *
 * The files are looked at by name only: closing a descriptor of a file drops all POSIX locks of the process on it.
 */
export class OpenFiles {
  readonly #files: readonly OpenFile[]
  #lost: UnusableStoreError | null = null

  private constructor(files: readonly OpenFile[]) {
    this.#files = files
  }

  /** To be called right after the database was opened; null when its file is another one than `expected`. */
  static of(path: string, expected: string | null): OpenFiles | null {
    const files = [path, `${path}-wal`].map((path) => ({ path, id: fileId(path) }))
    if (files.some(({ id }) => id === null) || files[0]!.id !== expected) return null
    return new OpenFiles(files as OpenFile[])
  }

  /** Throws when a file was deleted, moved or replaced; and from then on always. */
  assertInPlace(): void {
    if (this.#lost) throw this.#lost
    for (const { path, id } of this.#files) {
      const now = fileId(path)
      if (now !== id) throw (this.#lost = lostFile(path, now === null))
    }
  }
}

/** Device and inode of a file; null when there is none. */
export function fileId(path: string): string | null {
  let stat: BigIntStats | undefined
  try {
    stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    throw new StoreUnavailableError(
      `The file ${path} cannot be looked at: ${messageOf(error)}. Check the permissions of its folder.`,
      { cause: error },
    )
  }
  return stat ? `${stat.dev}:${stat.ino}` : null
}

function lostFile(path: string, isMissing: boolean): UnusableStoreError {
  const what = isMissing ? 'was deleted or moved' : 'was replaced by another file'
  return new UnusableStoreError(
    `The database file ${path} ${what} while this process had it open. Nothing has been reported as saved since. ` +
      'Stop every process that uses it, put the file back together with its -wal file or restore a backup, ' +
      'and start again.',
  )
}
