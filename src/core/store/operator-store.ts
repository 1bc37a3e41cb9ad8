import type { RunId, TargetId } from '../model/id.ts'
import type {
  AuditInfo,
  DeleteResult,
  ParkedTarget,
  ReplanRequest,
  ReplanResult,
  RevertRequest,
  RewindRequest,
} from './operator-requests.ts'

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
