import type { Checkpoint, InTransaction } from '../model/checkpoint.ts'
import type { Claim, ClaimedTarget, Outcome } from '../model/claim.ts'
import type { Execution, ExecutionEnd } from '../model/execution.ts'
import type { SourceLock } from '../model/source-lock.ts'
import type { ClaimId, RunId, TargetId, WorkerId } from '../model/id.ts'
import type { SavedItem } from '../model/item.ts'
import type { Policy } from '../model/policy.ts'
import type { AdoptedRef, Counts, Run, RunKind, RunStatus } from '../model/run.ts'
import type { TargetInput, Target } from '../model/target.ts'
import type { Millis } from '../model/time.ts'
import type { Decision } from '../model/verdict.ts'
import type { Evidence, Presence, ProcessIdentity, Liveness, Worker } from '../model/worker.ts'
import type {
  AuditCount,
  AuditEntry,
  AuditFilter,
  AuditInfo,
  DeleteResult,
  ReplanRequest,
  ReplanResult,
  RevertRequest,
  RewindRequest,
  RunMove,
  ParkedTarget,
} from './operator-requests.ts'
import type { UnlockSourceRequest, LockSourceRequest } from './source-lock-requests.ts'
import type { Heartbeat, HeartbeatResult } from './heartbeat.ts'
import type { AdoptedStore, UnreadableTable } from './adopted-store.ts'
import type { Inspection } from './inspection.ts'
import type { Listing, RunFilter, TargetFilter } from './listing.ts'
import type { CrawleeStore } from './crawlee-store.ts'
import type { MonitoringStore } from './reads.ts'

export type * from './operator-requests.ts'
export type * from './source-lock-requests.ts'
export type * from './heartbeat.ts'
export type * from './listing.ts'
export type * from './adopted-store.ts'
export type * from './crawlee-store.ts'
export type * from './reads.ts'

/**
 * The memory. Each verb says what holds after it; `conformance/` holds every engine to it.
 *
 * Writes take batches and answer for each member: one fenced page does not spoil the others. A verb that
 * throws `StoreUnavailableError` may be called again with the same arguments: nothing is done twice.
 */
export interface Store extends MonitoringStore, AdoptedStore, CrawleeStore {
  readonly engine: 'sqlite' | 'postgres'
  /** Where it is, without secrets. */
  readonly location: string
  /** What a person should know about it, in sentences. */
  readonly warnings: readonly string[]
  /** Tables of users' own that cannot be read now: nothing that is in them is among what is answered. */
  readonly unreadable: readonly UnreadableTable[]
  /** The one clock that decides. */
  now(): Promise<Millis>

  // — Runs —

  /**
   * A live run of the source exists afterwards and is this one; else throws `AlreadyRunningError`. One of the kind `single`
   * has its one target, and is planned with it.
   */
  enqueue(run: NewRun): Promise<void>
  /** Adds targets; a key that is there already stays as it is. Answers how many were new. */
  plan(run: RunId, targets: readonly TargetInput[]): Promise<number>
  /** True for one worker at a time: it asks `targets()`, the others need not. Held until planned, or the worker retires. */
  claimPlanning(run: RunId, worker: WorkerId): Promise<boolean>
  /** All targets are in: from now on the run can end. */
  finishPlanning(run: RunId): Promise<void>
  /** Keeps the policy that the run is worked on with, so that any process can judge it. */
  setPolicy(run: RunId, policy: Policy): Promise<void>
  /**
   * Starts or takes up the source's run with one target, and claims it, in one step. Of any number at once
   * exactly one gets the claim; the others get the run, or the guard of somebody else who has not ended, that is in the way.
   */
  begin(request: BeginRequest): Promise<BeginResult>
  liveRun(source: string): Promise<Run | null>
  run(id: RunId): Promise<Run | null>
  /** Newest first. */
  runs(filter: RunFilter): Promise<Listing<Run>>
  /** Every live run, newest first, with what a judge needs to know of it. */
  liveRuns(): Promise<LiveRun[]>
  /**
   * Ends runs that are planned and have no open target; marks as interrupted those that have work left but
   * neither a claim nor a living worker. A compare-and-set: safe to repeat, and repeated by the sweep, so
   * that two last finishers cannot miss each other. An interrupted run that somebody claimed from meanwhile is running
   * again. `lost`: whoever held it was lost, so that it counts as interrupted even if others live who have not
   * taken it up yet. Answers what changed.
   */
  settle(run?: RunId, ownerLost?: boolean): Promise<{ run: RunId; status: RunStatus }[]>

  // — Targets —

  /**
   * Claims at most one ready target per given id, oldest first, and makes their run `running`. Counts a crash
   * for each, struck off when the claim ends any other way. An `empty` process that finds a target which took
   * a worker down gets that one alone. Asked again with the same ids, answers the same claims.
   */
  claim(request: ClaimRequest): Promise<ClaimedTarget[]>
  /**
   * For each page: its items are saved and its target stands behind it, or neither. The fence is the
   * first write. A page that is already in (same claim, next number, same hash) is answered as saved.
   * `inTransaction` goes with a batch of one.
   */
  checkpoint(
    pages: readonly Checkpoint[],
    inTransaction?: InTransaction,
  ): Promise<Outcome<{ seq: number }>[]>
  /** The targets are done, without a further page. */
  finish(claims: readonly Claim[]): Promise<Outcome<void>[]>
  /** Ends claims with an error: planned again after a pause, failed or parked. Not a crash; parking is not an error of the handler. */
  fail(failures: readonly Failure[]): Promise<Outcome<void>[]>
  /** Handed back untouched, claimable at once. Costs the target nothing. */
  release(claims: readonly Claim[]): Promise<Outcome<void>[]>
  /** Its command showed a sign of activity. `artifacts`: files in its output directory by now; more is progress. */
  reportActivity(claim: Claim, artifacts: number): Promise<Outcome<void>>
  /** What a run with one target says of itself. */
  reportProgress(claim: Claim, progress: { done: number; total: number }): Promise<Outcome<void>>
  target(id: TargetId): Promise<Target | null>
  targets(run: RunId, filter: TargetFilter): Promise<Listing<Target>>
  /** Of these keys, the targets that are there, in no order. */
  targetsByKey(run: RunId, keys: readonly string[]): Promise<Target[]>
  /** Returns the ids with this suffix, ten at most. For targets it reads the whole table: not for loops. */
  idsEnding(suffix: string, kind: 'run' | 'target'): Promise<string[]>
  /** Counts per group, from the same books as the run's. */
  countsByGroup(run: RunId): Promise<{ group: string | null; counts: Counts }[]>
  /** How many targets stand at which page. Reads the run's targets: for people, not for loops. */
  countsByPage(run: RunId): Promise<{ page: number; targets: number }[]>

  // — Items —

  /** By key, from after the given one. */
  items(source: string, after: string | null, limit: number): Promise<SavedItem[]>
  /** How many items each run was the last to save. Reads all of the source: for people, not for loops. */
  itemsByRun(source: string): Promise<{ run: RunId; items: number }[]>

  // — Workers —

  /** Takes the lock that this worker's death frees. Comes before `register`. */
  acquirePresence(worker: WorkerId): Promise<PresenceLock>
  registerWorker(worker: NewWorker): Promise<void>
  /**
   * The worker lives and holds these claims. Claims in its name that it does not name and that are older than
   * its lease are released (their answer got lost). Crashes that recovery counted because the worker seemed lost are
   * struck off. Answers which of the named ones are still its own.
   */
  heartbeat(heartbeat: Heartbeat): Promise<HeartbeatResult>
  /** The worker has ended. One that still holds a target or a guard stays: those are to be taken from it first. */
  retireWorker(worker: WorkerId): Promise<void>
  /** Workers that have not ended, with what the kernel and the clock say about each. */
  observations(): Promise<WorkerObservation[]>
  worker(id: WorkerId): Promise<Worker | null>

  // — Wrapped commands —

  /**
   * The worker holds the source's guard afterwards if it was free, already its own, its holder has ended, or is the one
   * named in `instead` and has not beaten since. Clears `gaveUp`. Answers the guard as it is then.
   */
  lockSource(request: LockSourceRequest): Promise<SourceLock>
  /** The holder is about to let go: others need not give up. */
  markUnlocking(source: string, worker: WorkerId): Promise<void>
  /** Free, if this worker holds it (and, when `beats` is given, has not beaten since). `gaveUp`: why it will not try again. */
  unlockSource(request: UnlockSourceRequest): Promise<boolean>
  /** Returns all locks ordered by source, or the one of this source. */
  sourceLocks(source?: string): Promise<SourceLock[]>
  startExecution(execution: Execution): Promise<void>
  endExecution(id: string, end: ExecutionEnd): Promise<void>
  /** Newest first. */
  executions(run: RunId, limit: number): Promise<Execution[]>

  // — Recovery —

  /**
   * True while it is this worker's turn to look after the others: one process at a time. A dead holder's turn is taken
   * at once, as is one that lasts longer than the asker's would.
   */
  acquireLeadership(worker: WorkerId, forMs: number, role?: LeaderRole): Promise<boolean>
  /** What a worker holds, by target id, from after the given one; long texts are cut, as in a list. */
  claimsOf(worker: WorkerId, after: TargetId | null, limit: number): Promise<HeldTarget[]>
  /**
   * Applies each judgement if the target still is what was judged (claim, checkpoint, and its worker's beats), with its
   * audit row, in one transaction. N recoverers at once act as one. Answers which were applied by this call.
   */
  applyVerdicts(verdicts: readonly PendingVerdict[], actor: string): Promise<boolean[]>
  /**
   * Moves a run as it was judged, or as a person asked, if it still is what `only` says; one audit row. Those who hold
   * targets of a cancelled or abandoned run hear of it with their next beat and may finish their page; one that is
   * interrupted or failed, for a timeout, has its targets back in line at once.
   */
  moveRun(move: RunMove): Promise<boolean>

  // — What people ask for: each in one transaction, with its audit row —

  /**
   * Puts targets back in line, from their cursors, and opens their run again when it had ended. Throws `AlreadyRunningError`
   * while another run of the source is live. Nothing is changed when no target fits, unless `reopen`.
   */
  replan(request: ReplanRequest): Promise<ReplanResult>
  /** A new queued run that follows this one from nothing; if this one is live and nobody holds it, it is failed. */
  retryRun(request: { run: RunId; newRun: RunId } & AuditInfo): Promise<void>
  /** Takes back what was done to a run, if it still is as planned. What anybody holds of it is fenced off. */
  revert(revert: RevertRequest): Promise<boolean>
  /** Parks targets, whoever has them. Answers those that were not done or parked already. */
  parkTargets(request: { targets: readonly TargetId[] } & AuditInfo): Promise<ParkedTarget[]>
  /** The one way a cursor goes back. Raises the epoch, so that whoever has the target loses it. */
  rewind(request: RewindRequest): Promise<void>
  /** The run and its targets are gone, and with `withItems` the items that no other run has saved since. */
  deleteRun(request: { run: RunId; withItems: boolean } & AuditInfo): Promise<DeleteResult>

  // — The audit trail —

  audit(filter: AuditFilter): Promise<AuditEntry[]>
  /** How often what was done to whose runs. */
  auditCounts(filter: { since?: Millis; source?: string }): Promise<AuditCount[]>

  // — Inspection —

  /** What the data shows of the promises: for a doctor's look, not for loops. Changes nothing. */
  inspect(): Promise<Inspection>

  close(): Promise<void>
}

export type NewRun = {
  readonly id: RunId
  readonly source: string
  readonly kind: RunKind
  readonly policy: Policy
  /** JSON for its command. */
  readonly input?: unknown
}

/** A live run as its judge sees it. */
export type LiveRun = {
  readonly run: Run
  /** The one target of a run that has only one; null for a crawl, or before it is planned. */
  readonly target: OnlyTarget | null
}

/** What of a target counts for the judgement of its run. */
export type OnlyTarget = Pick<
  Target,
  'status' | 'worker' | 'seq' | 'page' | 'pageTarget' | 'errors' | 'crashesAlone' | 'lastActivityAt'
>

export type BeginRequest = {
  readonly source: string
  readonly worker: WorkerId
  readonly policy: Policy
  /** Ids for what has to be made, chosen by the asker. */
  readonly run: RunId
  readonly target: TargetId
  readonly claimId: ClaimId
  /** Only this run, if it still is the source's live one: none is started. */
  readonly onlyRun?: RunId
  /** A live run of the source that was judged dead: it is abandoned in the same step, if it still is what was judged. */
  readonly abandonFirst?: RunMove | undefined
}

export type BeginResult =
  | { readonly claimed: ClaimedTarget; readonly resumed: boolean }
  | { readonly claimed: null; readonly blockingRun: RunId }
  | { readonly claimed: null; readonly sourceLock: SourceLock }

export type ClaimRequest = {
  readonly worker: WorkerId
  readonly source: string
  readonly claimIds: readonly ClaimId[]
  /** The process holds nothing: it may take a target that took a worker down, alone. */
  readonly isIdle: boolean
  /** The process never holds more than one target, so each of its claims counts as made alone. */
  readonly singleSlot: boolean
}

export type Failure = Claim & {
  readonly error: string
  /** What becomes of the target. `forefront`: ready at once and before all others, the latest first. */
  readonly becomes:
    | { readonly retryInMs: number; readonly forefront?: boolean | undefined }
    | 'failed'
    | 'parked'
  /** The cursor for the next claim, any JSON. Null or omitted: unchanged. Ignored when parked. */
  readonly nextCursor?: unknown
}

export interface PresenceLock {
  readonly presence: Presence
  release(): Promise<void>
}

export type NewWorker = {
  readonly id: WorkerId
  readonly source: string
  readonly process: ProcessIdentity
  readonly presence: Presence
  readonly version: string
  readonly heartbeatMs: number
  readonly leaseMs: number
}

/** What one process at a time does for all. */
export type LeaderRole = 'sweep' | 'monitor' | 'sample' | 'adopted' | `alerts ${string}`

export type WorkerObservation = {
  readonly worker: Worker
  readonly evidence: Evidence
  /** Of a row in a user's own table: the run that it is, or is a part of. Left out for our own. */
  readonly run?: RunId
}

/** A claimed target as recovery sees it. `row`: where it is in a user's own table; left out for our own. */
export type HeldTarget = {
  readonly target: Target
  readonly run: Run
  /** As of this look: the judgement holds only while they do not move on. */
  readonly workerHeartbeats: number
  readonly row?: AdoptedRef
}

export type PendingVerdict = {
  readonly held: HeldTarget
  readonly decision: Decision
  readonly liveness: Liveness
  readonly evidence: Evidence
  /** The worker is not proven dead: the crash is struck off if it sends a heartbeat again. */
  readonly isProvisional?: boolean
  /** The id of the new run where the decision is `retry`. */
  readonly newRun: RunId
}
