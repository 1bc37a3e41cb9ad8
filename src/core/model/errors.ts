import type { Claim } from './claim.ts'
import { shortId } from './id.ts'
import { LIMITS } from './limits.ts'
import { cutText } from './text.ts'

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

/** An error is advice: a stable code, what happened and why, and what to do now. See docs/errors.md. */
export class UnstuckError extends Error {
  readonly code: string
  readonly exitCode: number

  constructor(code: string, exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
    this.exitCode = exitCode
  }
}

/** A write came from a claim that is no longer the current one. Nothing was changed. */
export class LeaseLostError extends UnstuckError {
  readonly claim: Claim

  constructor(claim: Claim, because: string) {
    super(
      'E_LEASE_LOST',
      EXIT.leaseLost,
      `Target ${shortId(claim.target)} is no longer ours (epoch ${claim.epoch}): ${because}. ` +
        'Nothing was written. Drop it; its new owner goes on from the last saved page.',
    )
    this.claim = claim
  }
}

/** A checkpoint named a page that is already behind the cursor, or the last one again with other content. */
export class PageBehindError extends UnstuckError {
  constructor(target: string, page: number, at: number) {
    const what =
      page === at
        ? `was saved before with other content: its cursor stands at page ${at}`
        : `is behind its cursor, which stands at page ${at}`
    super(
      'E_PAGE_BEHIND',
      EXIT.failed,
      `Page ${page} of target ${shortId(target)} ${what}. ` +
        `A cursor only moves forward; go on from page ${at + 1}.`,
    )
  }
}

/** Somebody lives and works on this source. */
export class AlreadyRunningError extends UnstuckError {
  readonly source: string
  /** Null: a wrapped command between two runs. */
  readonly run: string | null

  constructor(source: string, run: string | null, holder: string) {
    super(
      'E_ALREADY_RUNNING',
      EXIT.alreadyRunning,
      `${source} is already running: ${run === null ? '' : `run ${shortId(run)}, `}${holder}. ` +
        `Wait for it, or look with \`unstuck ${run === null ? `check ${source}` : `show ${shortId(run)}`}\`.`,
    )
    this.source = source
    this.run = run
  }
}

/** Asked for once, and a run of this source has succeeded already. Nothing was started. */
export class AlreadyDoneError extends UnstuckError {
  readonly source: string
  readonly run: string

  constructor(source: string, run: string, finishedAt: string) {
    super(
      'E_ALREADY_DONE',
      EXIT.done,
      `${source} is done: run ${shortId(run)} succeeded at ${finishedAt}. Nothing was started. ` +
        'To do it again, begin it without `once`, or under another source.',
    )
    this.source = source
    this.run = run
  }
}

/** The page's content cannot be stored as it is; trying again will not help. */
export class PageRejectedError extends UnstuckError {
  constructor(message: string, options?: ErrorOptions) {
    super('E_PAGE_REJECTED', EXIT.failed, message, options)
  }
}

/** The database does not answer, now. Work waits and goes on when it is back. */
export class StoreUnavailableError extends UnstuckError {
  constructor(message: string, options?: ErrorOptions) {
    super('E_DB_UNREACHABLE', EXIT.unreachable, message, options)
  }
}

/** A worker that could be taken for lost claims nothing: its own heartbeat has to be accepted first. */
export class HeartbeatOverdueError extends StoreUnavailableError {
  constructor(where: string) {
    super(
      `No heartbeat of this process has reached the database ${where} for a while: nothing is claimed before one has. Try again.`,
    )
  }
}

export class StoreReadOnlyError extends UnstuckError {
  constructor(where: string, options?: ErrorOptions) {
    super(
      'E_DB_READ_ONLY',
      EXIT.unreachable,
      `The database ${where} can be read but not written. Check its file permissions, the disk, ` +
        'or whether this address leads to a standby; then start again.',
      options,
    )
  }
}

export class SchemaTooNewError extends UnstuckError {
  constructor(found: number, known: number) {
    super(
      'E_SCHEMA_NEWER',
      EXIT.schema,
      `The database has schema version ${found}; this unstuck knows up to ${known}. ` +
        'Nothing was written. Install the newer unstuck that migrated it.',
    )
  }
}

export class UnusableStoreError extends UnstuckError {
  constructor(message: string, options?: ErrorOptions) {
    super('E_DB_UNUSABLE', EXIT.unreachable, message, options)
  }
}

/** The worker's own row is gone, and with it perhaps everything else. */
export function unknownWorker(where: string): UnusableStoreError {
  return new UnusableStoreError(
    `The database ${where} does not know this worker any more: its tables were emptied, it was replaced or restored while the ` +
      'worker ran, or the worker was taken for dead for so long that it was forgotten. Stop every process that uses it, restore a backup if something is missing, and start again.',
  )
}

/** Our tables themselves are gone. */
export function missingTables(where: string, cause: unknown): UnusableStoreError {
  return new UnusableStoreError(
    `The tables of Unstuck in ${where} are gone (${messageOf(cause)}): they were dropped, or the database was replaced or ` +
      'restored while this process ran. Stop every process that uses it, restore a backup, and start again. ' +
      'A start on a database without them begins from nothing.',
    { cause },
  )
}

/** The database is lost to this process for good: waiting for it, or trying again, cannot help. Known by its code, which also survives the way from another thread. */
export function isUnusable(error: unknown): boolean {
  return error instanceof UnstuckError && error.code === 'E_DB_UNUSABLE'
}

/** Wrong flag, module, config or argument: the caller can mend it. */
export class UsageError extends UnstuckError {
  constructor(message: string, options?: ErrorOptions) {
    super('E_USAGE', EXIT.usage, message, options)
  }
}

export class NotFoundError extends UnstuckError {
  constructor(what: string, hint: string) {
    super('E_NOT_FOUND', EXIT.usage, `There is no ${what}. ${hint}`)
  }
}

/** What was asked for cannot be done to this run or target as it is now. Nothing was changed. */
export class RefusedError extends UnstuckError {
  constructor(message: string, exitCode: number = EXIT.failed) {
    super('E_REFUSED', exitCode, message)
  }
}

/** A worker is stopping: thrown into pages that are cut short, and by `run.signal`. */
export class StoppingError extends UnstuckError {
  constructor(because: string) {
    super(
      'E_STOPPING',
      EXIT.resumable,
      `Stopping: ${because}. Saved pages are kept; the rest is resumable.`,
    )
  }
}

/** Thrown by a page handler that knows when to come back, as after a 429 with Retry-After. */
export class RetryLaterError extends UnstuckError {
  readonly afterMs: number

  /** A time that is none, as of a Retry-After that could not be read: the usual pause. */
  constructor(afterMs: number, message = 'asked to come back later') {
    if (typeof afterMs !== 'number' || typeof message !== 'string')
      throw new UsageError('RetryLaterError takes a number of milliseconds, and a message in text.')
    super('E_RETRY_LATER', EXIT.failed, message)
    this.afterMs = afterMs
  }
}

/** The message of anything thrown. Never throws itself, whatever its getters do, and returns no more than `LIMITS.message`. */
export function messageOf(error: unknown): string {
  return safeText(() => (error instanceof Error ? error.message : error))
}

/** The same with where it was thrown, for a log. */
export function stackOf(error: unknown): string {
  return safeText(() => (error instanceof Error ? error.stack || error.message : error))
}

/** What the user's code threw, as an error whose class, code and message can be read without throwing. */
export function toError(thrown: unknown): Error {
  try {
    if (thrown instanceof Error && isReadable(thrown)) return thrown
  } catch {
    // A getter or a proxy threw.
  }
  return new Error(messageOf(thrown))
}

function isReadable(error: Error & { code?: unknown }): boolean {
  const { message, name, stack, code } = error
  const isShort = (text: unknown): boolean =>
    text === undefined || (typeof text === 'string' && text.length <= LIMITS.message)
  return (
    typeof message === 'string' && [message, name, stack].every(isShort) && typeof code !== 'symbol'
  )
}

function safeText(read: () => unknown): string {
  try {
    return cutText(String(read()), LIMITS.message)
  } catch {
    return 'An error that cannot be read was thrown: reading its message threw too.'
  }
}

/** What was thrown, with a code. */
export function toUnstuckError(thrown: unknown): UnstuckError {
  const error = toError(thrown)
  if (error instanceof UnstuckError) return error
  return new UnstuckError('E_UNEXPECTED', EXIT.failed, error.message, { cause: error })
}
