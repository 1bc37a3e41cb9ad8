import type { ErrorCode } from './error-data.ts'
import { UnstuckError } from './errors.ts'

/** Exit codes that scripts can use. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  needsAttention: 3,
  alreadyRunning: 5,
  leaseLost: 6,
  unreachable: 7,
  schema: 9,
  resumable: 75,
} as const

/** As shells return it. */
const COMMAND_NOT_EXECUTABLE = 126
const COMMAND_NOT_FOUND = 127

const BY_CODE: Readonly<Partial<Record<ErrorCode, number>>> = {
  E_ALREADY_DONE: EXIT.done,
  E_ALREADY_RUNNING: EXIT.alreadyRunning,
  E_COMMAND: COMMAND_NOT_EXECUTABLE,
  E_DB_READ_ONLY: EXIT.unreachable,
  E_DB_UNREACHABLE: EXIT.unreachable,
  E_DB_UNUSABLE: EXIT.unreachable,
  E_LEASE_LOST: EXIT.leaseLost,
  E_NOT_FOUND: EXIT.usage,
  E_SCHEMA_NEWER: EXIT.schema,
  E_SCHEMA_OLDER: EXIT.schema,
  E_SOURCE_PAUSED: EXIT.alreadyRunning,
  E_STOPPING: EXIT.resumable,
  E_USAGE: EXIT.usage,
}

/**
 * Returns the exit code that the command line has for an error: 5 already running or paused, 0 already done, 75 stopped and
 * resumable, 7 database, 2 usage; 1 for every other error.
 * @example catch (error) { exit(exitCodeOf(error)) }
 */
export function exitCodeOf(error: unknown): number {
  if (!UnstuckError.is(error)) return EXIT.failed
  if (UnstuckError.is(error, 'E_COMMAND') && error.data.reason === 'ENOENT')
    return COMMAND_NOT_FOUND
  if (UnstuckError.is(error, 'E_REFUSED') && error.data.otherRunIsLive) return EXIT.alreadyRunning
  return BY_CODE[error.code] ?? EXIT.failed
}
