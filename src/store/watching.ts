import type { Alert } from '../model/alert.ts'
import type { RunId, TargetId } from '../model/id.ts'
import type { Operation } from '../model/operation.ts'
import type { Counts, Run, RunStatus } from '../model/run.ts'
import type { Sample } from '../model/sample.ts'
import type { Target, TroubledStatus } from '../model/target.ts'
import type { Millis } from '../model/time.ts'
import type { Listing } from './listing.ts'

/** What those who look on ask of the store: the whole at a glance, how it went over time, what people were told and did. */
export interface Watching {
  // — All of it —

  /** All runs there are, by status. */
  runTotals(): Promise<Record<RunStatus, number>>
  /** The books of all runs, added up. */
  targetTotals(): Promise<Counts>

  // — What is left for a person —

  /** Runs that failed and that no newer run of their source has followed, newest first: 500 at most. */
  lastFailed(): Promise<Run[]>

  /**
   * Failed, stuck and parked targets, those of one run with the same status and error counted together: the 5,000 largest
   * groups, largest first. Reads all such targets: for people, not for loops.
   */
  troubles(filter: { source?: string | undefined }): Promise<Trouble[]>
  /** The same targets one by one, by id. */
  troubledTargets(filter: TroubleFilter): Promise<Listing<Target>>

  // — Over time —

  /**
   * Writes down how far each live run is, and each that has ended since it was last looked at. Of a minute the last look
   * counts: however many ask, a run has one entry in it.
   */
  takeSample(): Promise<void>
  /** By time. */
  samples(filter: SampleFilter): Promise<Sample[]>
  /** Forgets what was sampled before this time; answers how many entries. */
  pruneSamples(before: Millis): Promise<number>
  /** How often recovery changed something, per step from `since` on; a step without is left out. */
  recoveriesPerStep(filter: RecoveryFilter): Promise<{ at: Millis; count: number }[]>

  // — Alerts —

  /** Oldest first. */
  openAlerts(): Promise<Alert[]>
  /** Resolved ones, the last resolved first. */
  recentAlerts(limit: number): Promise<Alert[]>
  /**
   * It is open afterwards. True when it was not before: it begins now, and nobody was told yet. One that is open stays as
   * it is but for `because`.
   */
  raiseAlert(alert: NewAlert): Promise<boolean>
  /** People were told of it. */
  markSent(cause: string, at: Millis): Promise<void>
  /** True when it was open. */
  resolveAlert(cause: string): Promise<boolean>

  // — What people did over HTTP —

  /** Only ever added to; the one verb that writes a second row when it is called again. */
  recordOperation(operation: NewOperation): Promise<void>
  /** Newest first. */
  operations(page: {
    after?: number | undefined
    limit: number
  }): Promise<{ items: Operation[]; next: number | null }>

  // — What workers measure —

  /** The `stats` of all workers there ever were that sent some, as each last sent them. */
  workerStats(): Promise<unknown[]>
}

export type Trouble = {
  readonly source: string
  readonly run: RunId
  readonly status: TroubledStatus
  /** Empty: none is known. */
  readonly error: string
  readonly count: number
  readonly firstAt: Millis
  readonly lastAt: Millis
  readonly sample: { readonly id: TargetId; readonly key: string }
}

export type TroubleFilter = {
  readonly source?: string | undefined
  readonly statuses?: readonly TroubledStatus[] | undefined
  /** Whole errors, as `troubles` has them. */
  readonly errors?: readonly string[] | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export type SampleFilter = {
  readonly since: Millis
  readonly until: Millis
  readonly run?: RunId | undefined
  readonly source?: string | undefined
  /** For a long look: only those of every so many minutes, and the last of each run. */
  readonly everyMinutes?: number | undefined
}

export type RecoveryFilter = {
  readonly since: Millis
  readonly stepMs: number
  readonly run?: RunId | undefined
  readonly source?: string | undefined
}

export type NewAlert = Pick<Alert, 'cause' | 'rule' | 'source' | 'run' | 'because' | 'command'>
export type NewOperation = Omit<Operation, 'id' | 'at'>
