import type { HealthState, Severity } from '../core/decide/health.ts'
import type { RunKind, RunStatus } from '../core/model/run.ts'
import type { TargetStatus } from '../core/model/target.ts'
import type { Timestamp } from '../core/model/time.ts'
import type { Action } from '../core/model/verdict.ts'
import type { Liveness } from '../core/model/worker.ts'
import type { RunOrigin } from '../core/model/traits.ts'

/** The records in what the library returns, `--json` prints and HTTP sends: plain data, ISO times, `null` for unknown. */

/** A run: one execution for a source. */
export type Run = {
  /** Its id. Lists show the last 8 digits. */
  readonly id: string
  /** What is crawled. */
  readonly source: string
  /** Where it stands. */
  readonly status: RunStatus
  /** When it was queued or begun; null: unknown, as that of some rows of a table of your own. */
  readonly createdAt: Timestamp | null
  /** When it was first claimed; null before. */
  readonly startedAt: Timestamp | null
  /** When it ended; null before. */
  readonly finishedAt: Timestamp | null
  /** When a worker last saved or reported something; null: unknown, as that of some rows. */
  readonly lastActivityAt: Timestamp | null
  /** Finished targets; of a run with one target, what it reported; null: a row of a table of your own has `total` alone. */
  readonly done: number | null
  /** All targets known; of a run with one target, what it reported, else 1; null if it reported `done` alone. */
  readonly total: number | null
  /** Items saved as new or changed. */
  readonly extracted: number
  /** Items seen again that had not changed. */
  readonly unchanged: number
  /** What pages reported as left out. */
  readonly skipped: number
  /** 1, and one more each time it was resumed. */
  readonly attempt: number
  /** Why it failed; null if it did not. */
  readonly error: string | null
  /** The worker of a run with one target; null for a crawl, which has many. */
  readonly owner: RunOwner | null
  /** Whether it stopped with work left: `begin` and workers continue it. */
  readonly resumable: boolean
  /** The run that this one repeats from the beginning. */
  readonly retryOf: string | null
  /** An operator acknowledged how it ended: it no longer needs attention. */
  readonly acknowledged: boolean
  /** The row of a table of your own that it is; null for a run of Unstuck's own tables. */
  readonly origin: RunOrigin | null
  /** In a list: its error is longer than what is here. */
  readonly cut?: true
}

/** The worker of a run with one target. */
export type RunOwner = {
  /** The id of the worker. */
  readonly worker: string
  /** Its host; null where the worker was not looked up, and where a row of a table of your own has none. */
  readonly host: string | null
  /** Its process id; null as for the host. */
  readonly pid: number | null
}

/** A run in a list. */
export type ListedRun = Run & {
  /** Saved pages; null: not counted, as those of a table of your own. */
  readonly pages: number | null
  /** False while targets still come in: `total` is not final. */
  readonly planned: boolean
  /** `single`: a run from `begin` or a wrapped command, with one target. */
  readonly kind: RunKind
  /** How a live run fares; null for one that has ended. */
  readonly health: HealthState | null
  /** The severity of `health`. */
  readonly severity: Severity | null
  /** The reason for `health`. */
  readonly because: string | null
  /** How fast it goes; null while that is not known. */
  readonly pace: Pace | null
}

/** A number that may have decimals. */
export type Rate = number

/** How fast a run goes, by the samples of the last minutes. */
export type Pace = {
  /** Pages per minute. */
  readonly pagesPerMinute: Rate
  /** Items per minute. */
  readonly itemsPerMinute: Rate
  /** Seconds until all targets are done, as a range; null if unknown. */
  readonly etaSeconds: { readonly from: number; readonly to: number } | null
}

/** The worker that holds a run or a target, or held it last. */
export type Owner = {
  /** The id of the worker. */
  readonly worker: string
  /** The host that it runs on; null: of a row of a table of your own none is known. */
  readonly host: string | null
  /** Its process id; null: of a row of a table of your own none is known. */
  readonly pid: number | null
  /** Its name in a table of your own, where it has no other. */
  readonly label: string | null
  /** When it started; null: unknown, as that of some rows. */
  readonly startedAt: Timestamp | null
  /** Its last heartbeat; null: of a row of a table of your own none is known. */
  readonly lastHeartbeatAt: Timestamp | null
  /** Whether it is alive. */
  readonly liveness: Liveness
  /** The reason for `liveness`. */
  readonly because: string
}

/** Where the next worker continues. */
export type Checkpoint = {
  /** The last saved page. */
  readonly page: number
  /** How many pages there will be; null if unknown. */
  readonly pageTarget: number | null
  /** The next page's address; null if there is none. */
  readonly next: string | null
  /** What the last page reported. */
  readonly lastItemId: string | null
  /** What the last page returned as `cursor`. */
  readonly cursor: unknown
}

/** A live run with its verdict. */
export type AssessedRun = Omit<Run, 'owner'> & {
  /** What recovery would do. */
  readonly action: Action
  /** Why. */
  readonly because: string
  /** Why `action` cannot be applied: the setting that would allow it; null if it can. */
  readonly blockedBy: string | null
  /** The worker that holds it, or held it last. */
  readonly owner: Owner | null
  /** Where a run with one target continues; null for a crawl or before the first page. */
  readonly checkpoint: Pick<Checkpoint, 'page' | 'pageTarget'> | null
  /** What the verdict is based on, in sentences. */
  readonly evidence: readonly string[]
  /** The same as data. */
  readonly facts: Readonly<Record<string, unknown>>
  /** What the verdict is about: `run 4f2a91bc of shop`. */
  readonly subject: Subject
}

/** What a verdict is about. */
export type Subject = {
  /** `row`: of a table of your own. */
  readonly kind: 'run' | 'target' | 'row'
  /** `target austin (91bc4f2a) of shop` */
  readonly label: string
  /** As commands take it: `courses:4711` for a row, else the end of the id. */
  readonly name: string
}

/** A target: one listing, address or other unit of work of a run. */
export type Target = Checkpoint & {
  /** Its id. */
  readonly id: string
  /** The id of its run. */
  readonly run: string
  /** The row of a table of your own that it is; null for a target of Unstuck's own tables. */
  readonly origin: RunOrigin | null
  /** Names it within its run. */
  readonly key: string
  /** Its group, if it has one. */
  readonly group: string | null
  /** Where it stands. */
  readonly status: TargetStatus
  /** How often it was claimed. */
  readonly attempts: number
  /** Workers that died with it, without a page in between. */
  readonly crashes: number
  /** The worker that holds it; null if none does. */
  readonly worker: string | null
  /** When it was claimed; null if it is not. */
  readonly claimedAt: Timestamp | null
  /** When it last changed. */
  readonly lastActivityAt: Timestamp
  /** Its last error; null if it had none. */
  readonly lastError: string | null
  /** When it was done or given up; null before. */
  readonly finishedAt: Timestamp | null
  /** An operator acknowledged that it failed, is stuck or parked: it no longer needs attention. */
  readonly acknowledged: boolean
  /** In a list: its error, cursor or address is longer than what is here. */
  readonly cut?: true
}

/** A worker that has not ended. */
export type Worker = {
  /** Its id. */
  readonly id: string
  /** What it works on; empty for a process with runs from `begin`. */
  readonly source: string
  /** The host that it runs on; null: of a row of a table of your own none is known. */
  readonly host: string | null
  /** Its process id; null: of a row of a table of your own none is known. */
  readonly pid: number | null
  /** Its name in a table of your own, where it has no other. */
  readonly label: string | null
  /** When it started; null: unknown, as that of some rows. */
  readonly startedAt: Timestamp | null
  /** Its last heartbeat; null: of a row of a table of your own none is known. */
  readonly lastHeartbeatAt: Timestamp | null
  /** Whether it is alive. */
  readonly liveness: Liveness
  /** The reason for `liveness`. */
  readonly because: string
  /** How many targets it holds. */
  readonly targets: number
}

/** A saved item. */
export type Item<D = unknown> = {
  /** Its canonical address, or the key it was given. */
  readonly key: string
  /** Its address, if it has one. */
  readonly url: string | null
  /** What was saved. */
  readonly data: D
  /** 1, and one more each time its data changed. */
  readonly version: number
  /** The id of the run that saved it last. */
  readonly run: string
  /** The group of the target that saved it last; null if that has none. */
  readonly group: string | null
  /** Of a Crawlee crawler: the name of its dataset; null for items that are in none. */
  readonly dataset: string | null
  /** When it was first saved. */
  readonly firstSeenAt: Timestamp
  /** When it was last saved, changed or not. */
  readonly lastSeenAt: Timestamp
  /** When its data last changed. */
  readonly changedAt: Timestamp
}

/** What applies to a source beyond its runs. */
export type Source = {
  /** Its name. */
  readonly source: string
  /** Since when it is paused, and why; null: it is not. */
  readonly paused: { readonly since: Timestamp; readonly because: string } | null
  /** When the supervisor that waits starts its command again; null: none waits. */
  readonly nextStartAt: Timestamp | null
}

/** One change in the audit trail. */
export type AuditEntry = {
  /** Counts up. */
  readonly id: number
  /** When. */
  readonly at: Timestamp
  /** The user or process that did it. */
  readonly actor: string
  /** What was done. */
  readonly action: string
  /** The source of the run. */
  readonly source: string
  /** The id of the run; null for an action on the source. */
  readonly run: string | null
  /** The id of the target; null if it is about the run or the source. */
  readonly target: string | null
  /** The key of the target; null if there is none, or it is not known any more. */
  readonly key: string | null
  /** What it is about, as sentences name it: `run courses:4711`, `target austin (91bc4f2a)`, or the source. */
  readonly subject: string
  /** Why. */
  readonly because: string
  /** What it was based on, in sentences. */
  readonly evidence: readonly string[]
  /** The same as data; null if nothing was recorded. */
  readonly facts: Readonly<Record<string, unknown>> | null
  /** What it was before. */
  readonly before: unknown
  /** What it was after. */
  readonly after: unknown
}

/** How often an action was applied to the runs of a source. */
export type AuditCount = {
  /** The source. */
  readonly source: string
  /** What was done. */
  readonly action: string
  /** How often. */
  readonly count: number
  /** When last. */
  readonly lastAt: Timestamp
}

/** Counts of a run or of a group of its targets. */
export type Counts = Readonly<Record<TargetStatus, number>> & {
  /** All targets. */
  readonly total: number
  /** Saved pages; null: not counted, as those of a table of your own. */
  readonly pages: number | null
  /** Items saved as new or changed. */
  readonly extracted: number
  /** Items seen again that had not changed. */
  readonly unchanged: number
  /** What pages reported as left out. */
  readonly skipped: number
}

/** One life of a wrapped command. */
export type Execution = {
  /** Its id. */
  readonly id: string
  /** The host that it ran on. */
  readonly host: string
  /** The program and its arguments. */
  readonly command: unknown
  /** The same for a shell. */
  readonly commandLine: string
  /** `running`, or how it ended: `exit code 1, after 12 min, 2 files`. */
  readonly summary: string
  /** Its output folder. */
  readonly outputDir: string
  /** The file of its output. */
  readonly log: string
  /** When it started. */
  readonly startedAt: Timestamp
  /** When it ended; null before. */
  readonly finishedAt: Timestamp | null
  /** Its exit code; null before its end or after a signal. */
  readonly exitCode: number | null
  /** The signal that ended it. */
  readonly signal: string | null
  /** Why it ended. */
  readonly because: string | null
  /** Files in its output folder. */
  readonly artifacts: number | null
  /** The most memory it used, in bytes. */
  readonly peakMemory: number | null
}
