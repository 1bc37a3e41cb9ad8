import type { Checkpoint, InTransaction } from '../model/checkpoint.ts'
import type { Claim, ClaimedTarget, Outcome } from '../model/claim.ts'
import type { ClaimId, RunId, TargetId, WorkerId } from '../model/id.ts'
import type { Policy } from '../model/policy.ts'
import type { Paused, Run, RunStatus } from '../model/run.ts'
import type { RunOrigin, RunProfile } from '../model/traits.ts'
import type { SourceLock } from '../model/source-lock.ts'
import type { OnlyTarget, Target, TargetInput } from '../model/target.ts'
import type { Millis } from '../model/time.ts'
import type { Decision } from '../model/verdict.ts'
import type { Evidence, Liveness, Presence, Worker } from '../model/worker.ts'
import type { RunMove } from './operator-store.ts'

/** The methods of a worker process: runs, claims, checkpoints, heartbeats and recovery. */
export interface WorkerStore {
  /** The time of the store. All leases and pauses are measured by it. */
  now(): Promise<Millis>
  close(): Promise<void>

  // — Runs —

  /**
   * Makes this the live run of its source. Throws `AlreadyRunningError` if another one is. A run of the kind `single` gets
   * its one target and is planned.
   */
  enqueue(run: NewRun): Promise<void>
  /** Adds targets. A key that exists is left unchanged. Returns how many were new. */
  plan(run: RunId, targets: readonly TargetInput[]): Promise<number>
  /** True for one worker at a time, which then calls `targets()`. Held until the run is planned or the worker retires. */
  claimPlanning(run: RunId, worker: WorkerId): Promise<boolean>
  /** Marks all targets as added: from now on the run can end. */
  finishPlanning(run: RunId): Promise<void>
  /** Stores the policy of the run, so that any process can assess it. */
  setPolicy(run: RunId, policy: Policy): Promise<void>
  /**
   * Starts or resumes the source's run with one target and claims it, in one step. Of concurrent callers one gets the
   * claim. The others get the run, or the lock of a worker that has not ended, that blocks them.
   */
  begin(request: BeginRequest): Promise<BeginResult>
  liveRun(source: string): Promise<Run | null>
  run(id: RunId): Promise<Run | null>
  /** Returns every live run, newest first, with what its assessment needs. */
  liveRuns(): Promise<LiveRun[]>
  /**
   * Ends runs that are planned and have no open target. Marks runs with open targets as interrupted if they have neither a
   * claim nor a living worker, and as running again if they were claimed from since. A compare-and-set: safe to repeat, and
   * repeated by the sweep, so that two workers that finish last cannot miss each other. `ownerLost`: interrupts the run
   * even if other workers live that have not claimed from it yet. Returns the runs that changed.
   */
  settle(run?: RunId, ownerLost?: boolean): Promise<{ run: RunId; status: RunStatus }[]>
  /**
   * Moves a live run if the preconditions in `expected` hold, with one audit entry. Workers with targets of a cancelled or
   * abandoned run learn of it with their next heartbeat and may finish their page. The targets of an interrupted run, or of
   * one that failed for a timeout, are released at once.
   */
  moveRun(move: RunMove): Promise<boolean>

  // — Targets —

  /**
   * Claims at most one ready target per id, oldest first, and marks their run as running. Counts a crash for each, which
   * is subtracted when the claim ends in any other way. An idle process gets a target with crashes alone. Repeated with
   * the same ids, it returns the same claims.
   */
  claim(request: ClaimRequest): Promise<ClaimedTarget[]>
  /**
   * Saves the items of each page and advances its target, or neither. The fence is the first write. A page that is saved
   * already (same claim, next number, same hash) is reported as saved. `inTransaction` requires a batch of one.
   */
  checkpoint(
    pages: readonly Checkpoint[],
    inTransaction?: InTransaction,
  ): Promise<Outcome<{ seq: number }>[]>
  /** Marks targets as done without a further page. */
  finish(claims: readonly Claim[]): Promise<Outcome<void>[]>
  /** Ends claims with an error: planned again after a pause, failed, or parked. Not a crash. */
  fail(failures: readonly Failure[]): Promise<Outcome<void>[]>
  /** Releases targets unchanged: claimable at once, and the attempt is not counted. `forefront`: before all others. */
  release(
    claims: readonly (Claim & { readonly forefront?: boolean | undefined })[],
  ): Promise<Outcome<void>[]>
  /** Records activity of the target's command. `artifacts`: files in its output directory; a higher number is progress. */
  reportActivity(claim: Claim, artifacts: number): Promise<Outcome<void>>
  /** Records the progress that a run with one target reports. */
  reportProgress(claim: Claim, progress: { done: number; total: number }): Promise<Outcome<void>>
  target(id: TargetId): Promise<Target | null>
  /** Returns the targets with these keys, in no order. */
  targetsByKey(run: RunId, keys: readonly string[]): Promise<Target[]>

  // — Workers —

  /** Acquires the lock that the end of this worker's process frees. Comes before `registerWorker`. */
  acquirePresence(worker: WorkerId): Promise<PresenceLock>
  registerWorker(worker: NewWorker): Promise<void>
  /**
   * Reports that the worker lives and holds these claims. Releases claims of the worker that are not named and older than
   * its lease: the reply to their claim got lost. Subtracts crashes that recovery counted because the worker seemed lost. Returns
   * which of the named claims are still the worker's.
   */
  heartbeat(heartbeat: Heartbeat): Promise<HeartbeatResult>
  /** Marks the worker as ended, unless it still holds a target or a source lock: recovery has to end those first. */
  retireWorker(worker: WorkerId): Promise<void>
  /** Returns the workers that have not ended, each with the evidence of kernel and clock. */
  observations(): Promise<WorkerObservation[]>
  /**
   * True while this worker leads: one process at a time per role. The leadership of a dead worker is taken over at once,
   * as is one that lasts longer than `forMs`.
   */
  acquireLeadership(worker: WorkerId, forMs: number, role?: LeaderRole): Promise<boolean>

  // — Recovery —

  /** Returns the targets a worker holds, by id, from after the given one. Long texts are cut, as in a list. */
  claimsOf(worker: WorkerId, after: TargetId | null, limit: number): Promise<HeldTarget[]>
  /**
   * Applies each verdict if its target is unchanged (claim, checkpoint, heartbeats of its worker), with an audit entry, in
   * one transaction. Concurrent recoverers act as one. Returns which verdicts this call applied.
   */
  applyVerdicts(verdicts: readonly PendingVerdict[], actor: string): Promise<boolean[]>

  // — Source locks of wrapped commands —

  /**
   * Locks the source for the worker if the lock is free, already its own, its holder has ended, or is the one named in
   * `takeOverFrom` without a heartbeat since. Clears `gaveUp`. Returns the lock as it is then.
   */
  lockSource(request: LockSourceRequest): Promise<SourceLock>
  /** Records that the holder is about to unlock the source: others can wait. */
  markUnlocking(source: string, worker: WorkerId): Promise<void>
  /** Unlocks the source if this worker holds it and, with `heartbeats`, has sent none since. Returns whether it did. */
  unlockSource(request: UnlockSourceRequest): Promise<boolean>
  /** Returns all locks ordered by source, or the one of this source. */
  sourceLocks(source?: string): Promise<SourceLock[]>

  // — Samples and retention —

  /**
   * Records the counts of each live run, and of each that ended since its last sample. A run has one sample per second, the
   * last one taken. A run without progress for half an hour is sampled once an hour; only the oldest live run is sampled
   * every time, which shows that samples were taken. While one process samples, others return at once.
   * `unlessWithinMs`: does nothing if other workers exist and a sample was taken within this time.
   * `onlyChanged`: leaves out live runs that have not progressed since their last sample, and removes no sample.
   */
  takeSample(options?: { unlessWithinMs?: number; onlyChanged?: boolean }): Promise<void>
  /** Removes old rows, in short transactions. Omitted bounds remove nothing. Returns how many rows were removed. */
  prune(bounds: PruneBounds): Promise<{ samples: number; workers: number }>
}

export type NewRun = Pick<Run, 'id' | 'source' | 'kind' | 'policy'> & {
  /** JSON for its command. */
  readonly input?: unknown
  /** @default 'standard' */
  readonly profile?: RunProfile
}

/** A live run as its assessment needs it. */
export type LiveRun = {
  readonly run: Run
  /** The target of a run of the kind `single`; null for a crawl, or before it is planned. */
  readonly target: OnlyTarget | null
}

export type BeginRequest = {
  readonly source: string
  readonly worker: WorkerId
  readonly policy: Policy
  /** Ids for new rows, chosen by the caller. */
  readonly run: RunId
  readonly target: TargetId
  readonly claimId: ClaimId
  /** Claims only this run, if it is still the source's live one. Starts none. */
  readonly onlyRun?: RunId
  /** Abandons a live run of the source in the same step, if it still is what was assessed as dead. */
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
  /** The process holds no target: it may claim one with crashes, alone. */
  readonly isIdle: boolean
  /** The process never holds more than one target, so each of its claims counts as made alone. */
  readonly singleSlot: boolean
}

export type Failure = Claim & {
  readonly error: string
  /** `forefront`: ready at once and before all others, the latest first. */
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

export type NewWorker = Pick<
  Worker,
  'id' | 'source' | 'process' | 'presence' | 'version' | 'heartbeatMs' | 'leaseMs'
>

export type Heartbeat = {
  readonly worker: WorkerId
  readonly claimIds: readonly ClaimId[]
  readonly loopLagMs: number
  /** Measurements since the worker started, any JSON; kept after its end. Omitted: unchanged. */
  readonly stats?: unknown
}

export type HeartbeatResult = {
  /** The named claims that are still this worker's. */
  readonly held: readonly ClaimId[]
  /** Those of `held` whose run was cancelled: stop at the end of the page. */
  readonly cancelled: readonly ClaimId[]
  /** Targets that were parked for the crash of a worker that lives: their crash is subtracted, the caller unparks them. */
  readonly unpark: readonly { readonly run: RunId; readonly target: TargetId }[]
  /** When the database server started; null for an engine without one. */
  readonly serverStartedAt: Millis | null
  readonly now: Millis
  /** The worker's source is paused: claim nothing, and release targets at the end of the page. */
  readonly paused: Paused | null
  /** The schema requires a newer program: finish the pages and end. */
  readonly isOutdated: boolean
  /** A problem of the database that does not stop work; omitted if there is none. */
  readonly warning?: string
}

/** Jobs that one process at a time does for all. */
export type LeaderRole = 'sweep' | 'monitor' | 'sample' | `feature:${string}` | `alerts ${string}`

export type WorkerObservation = {
  readonly worker: Worker
  readonly evidence: Evidence
  /** For a row in a user's own table: the run that it is, or is a part of. Omitted for Unstuck's own workers. */
  readonly run?: RunId
}

/** A claimed target as recovery sees it. `row`: its place in a user's own table; omitted for Unstuck's own targets. */
export type HeldTarget = {
  readonly target: Target
  readonly run: Run
  /** The worker's number of heartbeats when this was read: a verdict holds only while it does not change. */
  readonly workerHeartbeats: number
  readonly row?: RunOrigin
}

export type PendingVerdict = {
  readonly held: HeldTarget
  readonly decision: Decision
  readonly liveness: Liveness
  readonly evidence: Evidence
  /** The worker is not proven dead: its next heartbeat subtracts the crash. */
  readonly isProvisional?: boolean
  /** The id of the new run where the decision is `retry`. */
  readonly newRun: RunId
}

export type LockSourceRequest = {
  readonly source: string
  readonly worker: WorkerId
  readonly killTimeoutMs: number
  /** For the first lock of the source. Later locks keep it. */
  readonly processTag: string
  readonly takeOverFrom?: { readonly worker: WorkerId; readonly heartbeats: number } | undefined
}

export type UnlockSourceRequest = {
  readonly source: string
  readonly worker: WorkerId
  readonly heartbeats?: number | undefined
  /** Why the command is not started again. */
  readonly gaveUp?: string | undefined
}

export type PruneBounds = {
  readonly samplesBefore?: Millis
  /** Of the hours before this time keeps the last sample of a run in each minute. */
  readonly minutesBefore?: Millis
  /** Adds up the stats of workers that ended before this time. Stats of an unknown kind are dropped. */
  readonly statsBefore?: Millis
  readonly workers?: EndedWorkerBounds
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
