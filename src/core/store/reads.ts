import type { Alert } from '../model/alert.ts'
import type { RunId, TargetId, WorkerId } from '../model/id.ts'
import type { Operation } from '../model/operation.ts'
import type { Policy } from '../model/policy.ts'
import type { Counts, RunStatus } from '../model/run.ts'
import type { Sample } from '../model/sample.ts'
import type { DeadLetterStatus } from '../model/target.ts'
import type { Millis } from '../model/time.ts'
import type { Listing } from './listing.ts'
import type { HttpSessionStore } from './http-session-store.ts'

export type * from './http-session-store.ts'

/** What those who look on ask of the store: the whole at a glance, how it went over time, what people were told and did. */
export interface MonitoringStore extends HttpSessionStore {
  // — All of it —

  /** All runs there are, by status. */
  runTotals(): Promise<Record<RunStatus, number>>
  /** The books of all runs, added up. */
  targetTotals(): Promise<Counts>

  // — What is left for a person —

  /** Failed, stuck and parked targets, by id: as much of each as tells what kind of trouble it has. */
  deadLetters(filter: DeadLetterFilter): Promise<Listing<DeadLetter>>

  // — Over time —

  /**
   * Writes down how far each live run is, and each that has ended since it was last looked at. Of a minute the last look
   * counts: however many ask, a run has one entry in it; and while one looks, others need not. A run that has stood still
   * for half an hour is written down once an hour, in the first look of the hour: what is not there is as it was. Only
   * the oldest live run has an entry of every look, so that it is seen that somebody looked. `unlessWithinMs`: is left
   * to other workers when there are some and somebody has looked within this time.
   */
  takeSample(options?: { unlessWithinMs?: number }): Promise<void>
  /** By time. */
  samples(filter: SampleFilter): Promise<Sample[]>
  /** How often recovery changed something, per step from `since` on; a step without is left out. */
  recoveriesPerStep(filter: RecoveryFilter): Promise<{ at: Millis; count: number }[]>

  // — Alerts —

  /** Oldest first. */
  openAlerts(): Promise<Alert[]>
  /** Resolved ones, the last resolved first. */
  recentAlerts(limit: number): Promise<Alert[]>
  /**
   * It is open afterwards. True when it was not before: it begins now. One that is open stays as it is but for `because`,
   * and its owner if that has not seen it for minutes.
   */
  raiseAlert(alert: NewAlert): Promise<boolean>
  /** Whoever is there was told now; `event`: that it is so, or that it is over. */
  markDelivered(delivery: {
    causes: readonly string[]
    destination: string
    event: 'sent' | 'ended'
  }): Promise<void>
  /** True when it was open, of the same owner and not seen again since it was read. */
  resolveAlert(alert: Pick<Alert, 'cause' | 'owner' | 'lastSeenAt'>): Promise<boolean>

  // — What people did over HTTP —

  /** Only ever added to; the one verb that writes a second row when it is called again. */
  recordOperation(operation: NewOperation): Promise<void>
  /** Newest first. */
  operations(page: {
    after?: number | undefined
    limit: number
  }): Promise<{ items: Operation[]; next: number | null }>

  // — What workers measure —

  /**
   * The `stats` of all workers there ever were that sent some, as each last sent them; those of workers that ended long
   * ago are added up in one.
   */
  workerStats(): Promise<unknown[]>

  // — Retention —

  /** Removes old rows, in short transactions. Omitted bounds remove nothing. Returns how many rows were removed. */
  prune(bounds: PruneBounds): Promise<{ samples: number; workers: number; alerts: number }>

  /** What the workers that have not ended hold now, put together by worker, run and group. */
  holdings(): Promise<Holding[]>
}

export type PruneBounds = {
  readonly samplesBefore?: Millis
  /** Adds up the stats of workers that ended before this time. Stats of an unknown kind are dropped. */
  readonly statsBefore?: Millis
  readonly workers?: EndedWorkerBounds
  /** Alerts that were resolved before this time, with their deliveries. */
  readonly alertsBefore?: Millis
}

/**
 * Rows of workers that ended before `endedBefore`, and of those that ended before `settledBefore` all but the newest
 * `keepNewest` of all ended ones. Rows that a claim or a source lock refers to, or that have stats, are kept.
 */
export type EndedWorkerBounds = {
  readonly endedBefore: Millis
  readonly settledBefore: Millis
  readonly keepNewest: number
}

export type Holding = {
  readonly worker: WorkerId
  readonly run: RunId
  readonly group: string | null
  /** Of the run. */
  readonly policy: Policy
  readonly targets: number
  /** Of the target that has been still for longest. */
  readonly lastActivityAt: Millis
}

export type DeadLetter = {
  readonly id: TargetId
  readonly key: string
  readonly run: RunId
  readonly source: string
  readonly status: DeadLetterStatus
  /** Empty: none is known. */
  readonly error: string
  /** When it was given up. */
  readonly at: Millis
}

export type DeadLetterFilter = {
  readonly source?: string | undefined
  readonly statuses?: readonly DeadLetterStatus[] | undefined
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

export type NewAlert = Pick<
  Alert,
  'cause' | 'owner' | 'rule' | 'source' | 'run' | 'because' | 'command'
>
export type NewOperation = Omit<Operation, 'id' | 'at'>
