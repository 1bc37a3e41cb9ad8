import type { RunStatus } from '../model/run.ts'
import type { TargetStatus } from '../model/target.ts'
import type { Millis } from '../model/time.ts'

/** How lists are asked for and answered: page by page, each from after the last one's end. */

export type Listing<T> = { readonly items: T[]; readonly next: string | null }

/** A usual `limit` for `latestFailed`. */
export const LATEST_FAILED_MAX = 500

export type RunFilter = {
  readonly source?: string | undefined
  /** Any of these; all when none is named. */
  readonly statuses?: readonly RunStatus[] | undefined
  /** A part of its source in any case, or the end of its id. */
  readonly search?: string | undefined
  readonly createdSince?: Millis | undefined
  /** Only runs that failed and are the newest of their source. The other filters are ignored, and there is one page. */
  readonly latestFailed?: true | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export type TargetFilter = {
  /** Any of these; all when none is named. */
  readonly statuses?: readonly TargetStatus[] | undefined
  readonly group?: string | undefined
  /** With all of each, for programs; else long texts are cut, as lists for people are. */
  readonly whole?: true | undefined
  /** A part of its key or of its last error, in any case. */
  readonly search?: string | undefined
  readonly after?: string | undefined
  readonly limit: number
}
