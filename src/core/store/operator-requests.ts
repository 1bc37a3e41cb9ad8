import type { RunId, TargetId } from '../model/id.ts'
import type { RunStatus } from '../model/run.ts'
import type { RunOrigin } from '../model/traits.ts'
import type { TargetStatus } from '../model/target.ts'
import type { Millis } from '../model/time.ts'

/** What people and verdicts ask of the store, and the trail that it leaves. */

/** Who did something, and why, for the audit trail. */
export type AuditInfo = { readonly actor: string; readonly because: string }

export type RunMove = AuditInfo & {
  readonly run: RunId
  /** Interrupted: only from running. */
  readonly to: 'interrupted' | 'cancelled' | 'abandoned' | 'failed'
  /** As the audit trail has it: a verdict's action, or `cancel`. */
  readonly action: string
  readonly evidence: unknown
  /** What must still be so; what is left out may have changed. The run must be live anyhow. */
  readonly expected: {
    readonly status?: RunStatus
    readonly lastActivityAt?: Millis
    /** It has not been taken up again since. */
    readonly resumes?: number
    /** No worker holds a target of it. */
    readonly isUnclaimed?: boolean
    /** A row in a user's own table: which, and that it is what was judged, in every mapped column. */
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
  /** Targets that recovery set aside: back in line, if they are still so. */
  readonly targets: readonly {
    readonly id: TargetId
    readonly status: TargetStatus
    readonly seq: number
  }[]
  /** The retry that followed it and has not begun. */
  readonly cancel: RunId | null
  /** The action that is taken back. */
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
  /** The entry that the last answer ended with. */
  readonly after?: number | undefined
  readonly limit: number
}

export type AuditCount = {
  readonly source: string
  readonly action: string
  readonly count: number
  readonly lastAt: Millis
}

export type AuditEntry = {
  /** Grows; the order of things. */
  readonly id: number
  readonly at: Millis
  readonly actor: string
  readonly action: string
  readonly source: string
  readonly run: RunId
  readonly target: TargetId | null
  readonly because: string
  readonly evidence: unknown
  readonly before: unknown
  readonly after: unknown
}
