import { shellWord, unstuckCommand } from './shell-command.ts'
import type { ErrorCode, ErrorData, ErrorJson, Problem } from './error-data.ts'
import { shortId } from './id.ts'
import { LIMITS } from './limits.ts'
import { cutText } from './text.ts'
import { iso, type Timestamp } from './time.ts'

const IS_UNSTUCK_ERROR = Symbol.for('unstuck.error')

/**
 * The base of every error of Unstuck: a stable `code`, the facts as `data`, and a message that describes what happened and
 * what to do. See docs/reference/errors.md. `exitCodeOf(error)` returns the exit code for a script.
 */
export class UnstuckError<K extends ErrorCode = ErrorCode> extends Error {
  /** The stable code to branch on. */
  readonly code: K
  /** The facts, by code. */
  readonly data: ErrorData[K]

  /** Called by the classes below; programs use those. */
  constructor(code: K, message: string, data: ErrorData[K], options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
    this.data = data
  }

  /**
   * Returns true if the error is one of Unstuck, with this code if one is given, and narrows `data` by it. Also true for
   * errors of another copy of the package.
   */
  static is<K extends ErrorCode = ErrorCode>(
    error: unknown,
    code?: K,
  ): error is { [P in K]: UnstuckError<P> }[K] {
    try {
      if (!(error instanceof Error) || !(IS_UNSTUCK_ERROR in error)) return false
      return code === undefined || (error as unknown as UnstuckError).code === code
    } catch {
      // A proxy threw.
      return false
    }
  }

  /** Returns the error as plain data. */
  toJSON(): ErrorJson<K> {
    return { code: this.code, message: this.message, data: this.data }
  }
}
Object.defineProperty(UnstuckError.prototype, IS_UNSTUCK_ERROR, { value: true })

/** A write came from a claim that is no longer the current one. Nothing was written: stop. */
export class LeaseLostError extends UnstuckError<'E_LEASE_LOST'> {
  /** Called by Unstuck. */
  constructor(claim: { readonly target: string; readonly epoch: number }, because: string) {
    const { target, epoch } = claim
    super(
      'E_LEASE_LOST',
      `Target ${shortId(target)} is no longer ours (epoch ${epoch}): ${because}. ` +
        'Nothing was written. Drop it; its new owner continues from the last saved page.',
      { target, epoch },
    )
  }
}

/** A checkpoint named a page that is already behind the cursor, or the last one again with other content. */
export class PageBehindError extends UnstuckError<'E_PAGE_BEHIND'> {
  /** Called by Unstuck. */
  constructor(target: string, page: number, at: number) {
    const what =
      page === at
        ? `was saved before with other content: its cursor stands at page ${at}`
        : `is behind its cursor, which stands at page ${at}`
    super(
      'E_PAGE_BEHIND',
      `Page ${page} of target ${shortId(target)} ${what}. ` +
        `A cursor only moves forward; continue from page ${at + 1}.`,
      { target, page, at },
    )
  }
}

/** The source has a live run. Nothing was started. */
export class AlreadyRunningError extends UnstuckError<'E_ALREADY_RUNNING'> {
  /** Called by Unstuck. `owner`: what is known of it, as text; `name`: how commands name the run. */
  constructor(
    source: string,
    run: string | null,
    about: { readonly owner?: string; readonly status?: string; readonly name?: string } = {},
  ) {
    const { owner = null, status = 'running', name = run && shortId(run) } = about
    const known = [name && `run ${name}`, owner].filter(Boolean).join(', ')
    const lost = owner === null ? '; if its process has ended, `unstuck recover` comes first' : ''
    const more = name === null ? unstuckCommand('check', [source]) : unstuckCommand('show', [name])
    const others = `The next worker or start ${status === 'queued' ? 'begins' : 'continues'} it`
    const advice = status === 'running' ? `Wait for it${lost}` : others
    super(
      'E_ALREADY_RUNNING',
      `${source} is already ${status}: ${known}. ${advice}. More: \`${more}\``,
      { source, run, owner },
    )
  }
}

/** The source is paused. Nothing was started. */
export class SourcePausedError extends UnstuckError<'E_SOURCE_PAUSED'> {
  /** Called by Unstuck. */
  constructor(source: string, { at, because }: { readonly at: number; readonly because: string }) {
    const since = iso(at)
    super(
      'E_SOURCE_PAUSED',
      `${source} has been paused since ${since}: ${because}. Nothing was started. ` +
        `It can start after \`${unstuckCommand('unpause', [source])}\`.`,
      { source, since, because },
    )
  }
}

/** With `once`: a run of this source has succeeded already. Nothing was started. */
export class AlreadyDoneError extends UnstuckError<'E_ALREADY_DONE'> {
  /** Called by Unstuck. */
  constructor(source: string, run: string, finishedAt: Timestamp) {
    super(
      'E_ALREADY_DONE',
      `${source} is done: run ${shortId(run)} succeeded at ${finishedAt}. Nothing was started. ` +
        'To do it again, begin it without `once`, or under another source.',
      { source, run, finishedAt },
    )
  }
}

/** The page's content cannot be stored as it is. It is not retried: the same content would be rejected again. */
export class PageRejectedError extends UnstuckError<'E_PAGE_REJECTED'> {
  /** Called by Unstuck. */
  constructor(
    message: string,
    {
      page,
      problems = [{ path: '', message, hint: null }],
      ...options
    }: ErrorOptions & { page?: number; problems?: readonly Problem[] } = {},
  ) {
    super('E_PAGE_REJECTED', message, { page: page ?? null, problems }, options)
  }
}

/** The codes of a database that is unreachable, read-only, unusable, newer than this program, or of a pre-release. */
export type DatabaseErrorCode =
  | 'E_DB_UNREACHABLE'
  | 'E_DB_READ_ONLY'
  | 'E_DB_UNUSABLE'
  | 'E_SCHEMA_NEWER'
  | 'E_SCHEMA_OLDER'

/** The database cannot be used, now or at all, depending on `code`. */
export class DatabaseError<
  K extends DatabaseErrorCode = DatabaseErrorCode,
> extends UnstuckError<K> {
  /** Called by Unstuck. */
  constructor(code: K, message: string, data: ErrorData[K], options?: ErrorOptions) {
    super(code, message, data, options)
    // One class to catch: its subclasses are internal.
    this.name = 'DatabaseError'
  }
}

type DatabaseErrorOptions = ErrorOptions & { readonly where?: string }

/** The database does not respond now. Work waits and continues when it is back. */
export class StoreUnavailableError extends DatabaseError<'E_DB_UNREACHABLE'> {
  constructor(message: string, { where, ...options }: DatabaseErrorOptions = {}) {
    super('E_DB_UNREACHABLE', message, { where: where ?? null }, options)
  }
}

/** The heartbeats of this worker are overdue: it may claim nothing before one is accepted. */
export class HeartbeatOverdueError extends StoreUnavailableError {
  constructor(where: string) {
    super(
      `No heartbeat of this process has reached the database ${where} for a while: nothing is claimed before one has. Try again.`,
      { where },
    )
  }
}

export class StoreReadOnlyError extends DatabaseError<'E_DB_READ_ONLY'> {
  constructor(where: string, options?: ErrorOptions) {
    super(
      'E_DB_READ_ONLY',
      `The database ${where} can be read but not written. Check its file permissions, the disk, ` +
        'or whether this address leads to a standby; then start again.',
      { where },
      options,
    )
  }
}

export class UnusableStoreError extends DatabaseError<'E_DB_UNUSABLE'> {
  constructor(message: string, { where, ...options }: DatabaseErrorOptions = {}) {
    super('E_DB_UNUSABLE', message, { where: where ?? null }, options)
  }
}

/** The database no longer has this worker's row. */
export function unknownWorker(where: string): UnusableStoreError {
  return new UnusableStoreError(
    `The database ${where} does not know this worker any more: its tables were emptied, it was replaced or restored while the ` +
      'worker ran, or the worker was taken for dead for so long that it was forgotten. Stop every process that uses it, restore a backup if something is missing, and start again.',
    { where },
  )
}

/** The tables of Unstuck are missing. */
export function missingTables(where: string, cause: unknown): UnusableStoreError {
  return new UnusableStoreError(
    `The tables of Unstuck in ${where} are gone (${messageOf(cause)}): they were dropped, or the database was replaced or ` +
      'restored while this process ran. Stop every process that uses it, restore a backup, and start again. ' +
      'A start on a database without them begins from nothing.',
    { where, cause },
  )
}

/** True if the database is lost to this process for good: waiting or retrying cannot help. */
export function isUnusable(error: unknown): boolean {
  return UnstuckError.is(error, 'E_DB_UNUSABLE')
}

/** A wrong flag, argument, option or config. Nothing was done; `data.problems` names every mistake. */
export class UsageError extends UnstuckError<'E_USAGE'> {
  /** Called by Unstuck. */
  constructor(
    message: string,
    {
      problems = [{ path: '', message, hint: null }],
      ...options
    }: ErrorOptions & { problems?: readonly Problem[] } = {},
  ) {
    super('E_USAGE', message, { problems }, options)
  }
}

/** Several things have this id. `describe` names a command for each of them. */
export class AmbiguousIdError extends UsageError {
  readonly id: string
  readonly describe: (commandFor: (name: string) => string) => string

  constructor(id: string, describe: AmbiguousIdError['describe'], verb: string) {
    super(describe((name) => `unstuck ${verb} ${shellWord(name)}`))
    this.id = id
    this.describe = describe
  }
}

/** There is no run, target, source or file of this name. */
export class NotFoundError extends UnstuckError<'E_NOT_FOUND'> {
  /** Called by Unstuck. */
  constructor(what: string, hint: string) {
    super('E_NOT_FOUND', `There is no ${what}. ${hint}`, { what })
  }
}

export function unknownRun(id: string): NotFoundError {
  return new NotFoundError(`run ${id}`, '`unstuck runs` lists them.')
}

export function unknownTarget(id: string): NotFoundError {
  return new NotFoundError(`target ${id}`, '`unstuck show RUN` lists those that need attention.')
}

/** The action is not allowed as the run or target is now. Nothing was changed. */
export class RefusedError extends UnstuckError<'E_REFUSED'> {
  /** Called by Unstuck. */
  constructor(message: string, { otherRunIsLive = false }: { otherRunIsLive?: boolean } = {}) {
    super('E_REFUSED', message, { otherRunIsLive })
  }
}

/** `plan` of a preview does not fit any more: nothing was done. `data.preview` is what would be done now. */
export class PlanChangedError extends UnstuckError<'E_PLAN_CHANGED'> {
  /** Called by Unstuck. */
  constructor(preview: unknown) {
    super(
      'E_PLAN_CHANGED',
      'Something changed since the preview: nothing was done. Look at the new one, then pass its plan.',
      { preview },
    )
  }
}

/** The process is stopping: the reason of `signal` of a page or run that must end now. Its work can be resumed. */
export class StoppingError extends UnstuckError<'E_STOPPING'> {
  /** Called by Unstuck. */
  constructor(because: string) {
    super('E_STOPPING', `Stopping: ${because}. Saved pages are kept; the rest is resumable.`, {
      because,
      signal: /^SIG[A-Z]+/.exec(because)?.[0] ?? null,
    })
  }
}

/** The message of anything thrown. Never throws itself, whatever its getters do, and returns no more than `LIMITS.message`. */
export function messageOf(error: unknown): string {
  return safeText(() => (error instanceof Error ? withCause(error) : error))
}

/** Node's `fetch` has the reason in the cause alone. */
function withCause({ message, cause }: Error): string {
  const isHidden = message === 'fetch failed' && cause instanceof Error
  return isHidden ? `${message}: ${cause.message || (cause as { code?: string }).code}` : message
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

/** Returns what was thrown as an error with a code. */
export function toUnstuckError(thrown: unknown): UnstuckError {
  const error = toError(thrown)
  if (error instanceof UnstuckError) return error
  return new UnstuckError('E_UNEXPECTED', error.message, {}, { cause: error })
}
