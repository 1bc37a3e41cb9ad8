import type { RunId, TargetId } from '../model/id.ts'
import type { RunStatus } from '../model/run.ts'
import type { RunOrigin } from '../model/traits.ts'
import type { TargetStatus } from '../model/target.ts'
import type { Millis } from '../model/time.ts'

/** The actions of an operator, each in one transaction with its audit entry. */
export interface OperatorStore {
  /**
   * Plans targets again, from their cursors, and reopens their run if it had ended. Throws `AlreadyRunningError` while
   * another run of the source is live. Changes nothing if no target matches, unless `reopen` is set.
   */
  replan(request: ReplanRequest): Promise<ReplanResult>
  /** Enqueues a new run that repeats this one from the start. Fails this one if it is live and unclaimed. */
  retryRun(request: { run: RunId; newRun: RunId } & AuditInfo): Promise<void>
  /** Reverts what was done to a run, if it still is as planned. Claims of its targets are fenced off. */
  revert(revert: RevertRequest): Promise<boolean>
  /** Parks targets, claimed or not. Returns those that were neither done nor parked already. */
  parkTargets(request: { targets: readonly TargetId[] } & AuditInfo): Promise<ParkedTarget[]>
  /** Moves a cursor back; nothing else does. Raises the epoch, so that a worker that holds the target loses it. */
  rewind(request: RewindRequest): Promise<void>
  /** Deletes the run and its targets, and with `withItems` the items that no other run has saved since. */
  deleteRun(request: { run: RunId; withItems: boolean } & AuditInfo): Promise<DeleteResult>
}

/** The actor of an operation and its reason, for the audit trail. */
export type AuditInfo = { readonly actor: string; readonly because: string }

export type RunMove = AuditInfo & {
  readonly run: RunId
  /** Interrupted: only from running. */
  readonly to: 'interrupted' | 'cancelled' | 'abandoned' | 'failed'
  /** As the audit trail has it: a verdict's action, or `cancel`. */
  readonly action: string
  readonly evidence: unknown
  /** Preconditions. Omitted fields are not checked. The run must be live in any case. */
  readonly expected: {
    readonly status?: RunStatus
    readonly lastActivityAt?: Millis
    /** It has not been resumed since. */
    readonly resumes?: number
    /** No worker holds a target of it. */
    readonly isUnclaimed?: boolean
    /** A row in a table of your own: no mapped column has changed since it was assessed. */
    readonly row?: RunOrigin & { readonly rowHash: string }
  }
}

export type ReplanRequest = AuditInfo & {
  readonly run: RunId
  readonly action: 'resume' | 'reset-failed' | 'unpark'
  readonly statuses: readonly TargetStatus[]
  readonly targets?: readonly TargetId[] | undefined
  readonly groups?: readonly string[] | undefined
  /** Only those tried at most so often. */
  readonly attemptsMax?: number | undefined
  /**
   * Open the run again even if no target was put back: those that are planned wait for it. `for-more`: even if none does,
   * because more are about to be planned.
   */
  readonly reopen: boolean | 'for-more'
  /** Only count. */
  readonly dryRun: boolean
}
export type ReplanResult = { readonly targets: number; readonly reopened: boolean }

export type RevertRequest = AuditInfo & {
  readonly run: RunId
  readonly from: RunStatus
  readonly to: RunStatus
  /** Targets to put back in the queue, if they still have this status. */
  readonly targets: readonly {
    readonly id: TargetId
    readonly status: TargetStatus
    readonly seq: number
  }[]
  /** The retry that followed it and has not begun. */
  readonly cancel: RunId | null
  /** The action that is reverted. */
  readonly undoes: string
}

export type ParkedTarget = {
  readonly target: TargetId
  readonly run: RunId
  readonly from: TargetStatus
}

export type RewindRequest = AuditInfo & {
  readonly target: TargetId
  readonly to: number
  readonly next: string | null
  readonly cursor: unknown
}

export type DeleteResult = { readonly targets: number; readonly items: number }

export type AuditFilter = {
  readonly run?: RunId | undefined
  /** Of this run. */
  readonly target?: TargetId | undefined
  readonly source?: string | undefined
  readonly since?: Millis | undefined
  readonly newestFirst?: boolean | undefined
  /** The last entry of the previous page. */
  readonly after?: number | undefined
  readonly limit: number
}

export type AuditEntry = {
  /** Grows with each entry. */
  readonly id: number
  readonly at: Millis
  readonly actor: string
  readonly action: string
  readonly source: string
  /** Null for an action on the source as a whole. */
  readonly run: RunId | null
  readonly target: TargetId | null
  /** The key of the target, as long as Unstuck has it in a table of its own. */
  readonly key: string | null
  readonly because: string
  readonly evidence: unknown
  readonly before: unknown
  readonly after: unknown
}

/** What was done, as it is entered into the trail: by default for no single target, and without evidence. */
export type NewAuditEntry = Omit<AuditEntry, 'id' | 'at' | 'key' | 'target' | 'evidence'> &
  Partial<Pick<AuditEntry, 'target' | 'evidence'>>
