import type { Timestamp } from './time.ts'

/** One thing that is wrong with an argument, an option or a page. */
export type Problem = {
  /** Where: `policy.lease`, `items[3].url`; empty for the whole. */
  readonly path: string
  /** What is wrong, as a sentence without its full stop. */
  readonly message: string
  /** The name that was probably meant; null if none is close. */
  readonly hint: string | null
}

/** The facts of each error, by code: `error.data`. */
export type ErrorData = {
  /** A run of the source has succeeded before. */
  E_ALREADY_DONE: {
    readonly source: string
    readonly run: string
    readonly finishedAt: Timestamp
  }
  /** The source has a live run. `run` is null for a wrapped command between two runs. */
  E_ALREADY_RUNNING: {
    readonly source: string
    readonly run: string | null
    /** What is known of the owner, as text; null: nothing is. */
    readonly owner: string | null
  }
  /** The program after `--` could not be started; `reason` is Node's error code, as `ENOENT`. */
  E_COMMAND: { readonly command: string; readonly reason: string }
  /** The database can be read but not written. */
  E_DB_READ_ONLY: DatabaseFacts
  /** The database does not respond now. */
  E_DB_UNREACHABLE: DatabaseFacts
  /** What is at the address cannot be used as a database. */
  E_DB_UNUSABLE: DatabaseFacts
  /** The watchdog process of a wrapped command ended. */
  E_GUARDIAN: { readonly reason: string }
  /** Another worker has the target. */
  E_LEASE_LOST: { readonly target: string; readonly epoch: number }
  /** `what` names it: `run 0192…`. */
  E_NOT_FOUND: { readonly what: string }
  /** Thrown by a page that must not be retried. */
  E_NOT_RETRYABLE: Readonly<Record<string, never>>
  /** `at` is the last saved page: continue with the one after it. */
  E_PAGE_BEHIND: { readonly target: string; readonly page: number; readonly at: number }
  /** The page's content cannot be stored. */
  E_PAGE_REJECTED: { readonly page: number | null; readonly problems: readonly Problem[] }
  /** The action is not allowed as the run or target is now. */
  E_REFUSED: {
    /** A newer run of the same source is live. */
    readonly otherRunIsLive: boolean
  }
  /** A plan does not fit any more; `preview` is what would be done now. */
  E_PLAN_CHANGED: {
    /** The new preview: what `recover` or `clean` returns with `dryRun`. */
    readonly preview: unknown
  }
  /** The page asked for a later retry: after a time or at a time; both null: after the usual pause. */
  E_RETRY_LATER: { readonly afterMs: number | null; readonly at: Timestamp | null }
  /** The database has a newer schema than this program knows; null: it was migrated while the program ran. */
  E_SCHEMA_NEWER: { readonly found: number | null; readonly known: number | null }
  /** The database was made by a pre-release. */
  E_SCHEMA_OLDER: { readonly found: number }
  /** An operator paused the source. */
  E_SOURCE_PAUSED: {
    readonly source: string
    readonly since: Timestamp
    readonly because: string
  }
  /** The process was asked to stop: by `signal`, or for another reason. */
  E_STOPPING: { readonly because: string; readonly signal: string | null }
  /** Any other error. */
  E_UNEXPECTED: Readonly<Record<string, never>>
  /** Wrong options, arguments, flags or config. */
  E_USAGE: { readonly problems: readonly Problem[] }
}

/** Facts of a database error. */
export type DatabaseFacts = {
  /** The address without its password; null if it is only part of the message. */
  readonly where: string | null
}

/** A stable code to branch on; docs/reference/errors.md has an entry for each. */
export type ErrorCode = keyof ErrorData

/** An error as plain data: what `JSON.stringify(error)` prints. */
export type ErrorJson<K extends ErrorCode = ErrorCode> = {
  /** The stable code. */
  readonly code: K
  /** What happened and what to do. */
  readonly message: string
  /** The facts, by code. */
  readonly data: ErrorData[K]
}
