import type { RunId, WorkerId } from '../model/id.ts'
import type { Policy } from '../model/policy.ts'
import type { Counts, Run, RunStatus } from '../model/run.ts'
import type { DeadLetterStatus, Target, TargetStatus } from '../model/target.ts'
import type { Millis } from '../model/time.ts'
import type { Worker } from '../model/worker.ts'
import type { AuditEntry, AuditFilter } from './operator-store.ts'

/** Everything that is only read, for presenters. No method changes anything. */
export interface Reads {
  // — Runs and targets —

  /** Returns runs, newest first. */
  runs(filter: RunFilter): Promise<Listing<Run>>
  targets(run: RunId, filter: TargetFilter): Promise<Listing<Target>>
  /** Returns the first few ids with this suffix, or of rows with this key. For targets it reads the whole table: not for loops. */
  idsEnding(suffix: string, kind: 'run' | 'target'): Promise<string[]>
  /** Returns failed, stuck and parked targets by id, with the fields that group them. */
  deadLetters(filter: DeadLetterFilter): Promise<Listing<DeadLetter>>

  // — Counts —

  /** Returns the number of all runs by status. */
  runTotals(): Promise<Record<RunStatus, number>>
  /** Returns the sum of the counters of all runs. */
  targetTotals(): Promise<Counts>
  /** Returns the counters of a run per group. */
  countsByGroup(run: RunId): Promise<{ group: string | null; counts: Counts }[]>
  /** Returns how many targets are at which page. Reads all targets of the run: not for loops. */
  countsByPage(run: RunId): Promise<{ page: number; targets: number }[]>

  // — History —

  audit(filter: AuditFilter): Promise<AuditEntry[]>

  // — Workers —

  /** Returns a worker, ended or not. */
  worker(id: WorkerId): Promise<Worker | null>
  /** Returns what the workers that have not ended hold now, by worker, run and group. */
  holdings(): Promise<Holding[]>
}

/** One page of a list; `next` is the `after` of the following one. */
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
  /** Only runs with a target that failed, is stuck or parked, and that an operator acknowledged, or did not. Only `source` goes with it. */
  readonly deadLetters?: 'acknowledged' | 'unacknowledged' | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export type TargetFilter = {
  /** Any of these; all when none is named. */
  readonly statuses?: readonly TargetStatus[] | undefined
  readonly group?: string | undefined
  /** Only those that an operator acknowledged, or only the others. */
  readonly acknowledged?: boolean | undefined
  /** Returns each whole, for programs; else long texts are cut. */
  readonly whole?: true | undefined
  /** A part of its key or of its last error, in any case. */
  readonly search?: string | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export type Holding = {
  readonly worker: WorkerId
  readonly run: RunId
  readonly group: string | null
  /** Of the run. */
  readonly policy: Policy
  readonly targets: number
  /** Of the target with the oldest activity. */
  readonly lastActivityAt: Millis
}

export type DeadLetter = Pick<Target, 'id' | 'key' | 'run' | 'origin'> & {
  readonly source: string
  readonly status: DeadLetterStatus
  /** Empty if unknown. */
  readonly error: string
  /** When it was failed, marked as stuck, or parked. */
  readonly at: Millis
}

export type DeadLetterFilter = {
  readonly source?: string | undefined
  readonly statuses?: readonly DeadLetterStatus[] | undefined
  /** Only those that an operator acknowledged, or only the others. */
  readonly acknowledged?: boolean | undefined
  readonly after?: string | undefined
  readonly limit: number
}
