import {
  messageOf,
  missingTables,
  StoreReadOnlyError,
  StoreUnavailableError,
  UnstuckError,
  UnusableStoreError,
} from '../../model/errors.ts'

const ERROR = 1
const BUSY = 5
const LOCKED = 6
const READONLY = 8
const IOERR = 10
const CORRUPT = 11
const FULL = 13
const CANTOPEN = 14
const NOTADB = 26

export function sqliteCode(error: unknown): number | null {
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown }
  return code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number' ? errcode & 0xff : null
}

export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === BUSY || code === LOCKED
}

/** A statement of Unstuck found no table. Statements of the user are distinguished where they run. */
export class MissingTableError extends Error {}

export function isMissingTable(error: unknown): boolean {
  return sqliteCode(error) === ERROR && messageOf(error).startsWith('no such table')
}

/** SQLite's error as advice. What is not SQLite's comes back as it is. */
export function storeError(error: unknown, where: string): unknown {
  if (error instanceof UnstuckError) return error
  if (error instanceof MissingTableError) return missingTables(where, error)
  const options = { cause: error }
  const unavailable = (message: string) => new StoreUnavailableError(message, options)
  const unusable = (message: string) => new UnusableStoreError(message, options)
  switch (sqliteCode(error)) {
    case BUSY:
    case LOCKED:
      return unavailable(`The database ${where} is locked by another process.`)
    case FULL:
      return unavailable(
        `The disk of the database ${where} is full. Free some space; work goes on by itself.`,
      )
    case IOERR:
      return unavailable(
        `The disk of the database ${where} reports an error: ${(error as Error).message}.`,
      )
    case READONLY:
      return new StoreReadOnlyError(where, options)
    case CANTOPEN:
      return unusable(
        `The database ${where} cannot be opened. Check that its folder exists and may be written to.`,
      )
    case CORRUPT:
    case NOTADB:
      return unusable(
        `The file ${where} is not a sound SQLite database. Restore it from a backup, or name another with --db.`,
      )
    default:
      return error
  }
}
