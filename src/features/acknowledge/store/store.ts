import { storedText } from '../../../core/store/stored-text.ts'
import { LIMITS } from '../../../core/model/limits.ts'
import type { RunId, TargetId, WorkerId } from '../../../core/model/id.ts'
import type { DeadLetterStatus } from '../../../core/model/target.ts'
import type { AuditInfo, StoreExtension } from '../../../core/store/store.ts'

export type AcknowledgeRequest = AuditInfo & {
  readonly run: RunId
  /** Only these of its failed, stuck and parked targets; else all, and the run itself if it failed or was abandoned. */
  readonly targets?: readonly TargetId[] | undefined
  readonly groups?: readonly string[] | undefined
  /** Of a table of your own: also the stuck rows of these workers, each with the hash of its row as it was assessed. */
  readonly stuckRows?: ReadonlyMap<WorkerId, string | undefined> | undefined
  /** Removes the mark. */
  readonly undo: boolean
  /** Counts, and changes nothing. */
  readonly dryRun: boolean
}

export type AcknowledgeResult = {
  /** Targets whose mark was set or removed. */
  readonly targets: number
  /** The mark of the run itself was set or removed. */
  readonly isRunChanged: boolean
}

export type AcknowledgedCount = {
  readonly run: RunId
  readonly status: DeadLetterStatus
  readonly count: number
}

/**
 * Marks runs and targets that need attention as seen by an operator. The mark changes nothing else: whatever puts a
 * target back in the queue, parks it or reopens a run removes it.
 */
export interface AcknowledgeStore {
  /** Sets or removes marks, in one transaction with one audit entry; without an entry if there is nothing to change. */
  acknowledge(request: AcknowledgeRequest): Promise<AcknowledgeResult>
  /** Returns how many failed, stuck and parked targets are acknowledged: of these runs, or of all. */
  acknowledgedCounts(runs: readonly RunId[] | null): Promise<AcknowledgedCount[]>
}

export const ACKNOWLEDGE_STORE: StoreExtension<AcknowledgeStore> = {
  sqlite: async () => (await import('./sqlite.ts')).acknowledgeMethods,
  postgres: async () => (await import('./postgres.ts')).acknowledgeMethods,
  clean: (store) => ({
    acknowledge: (request) =>
      store.acknowledge({
        ...request,
        actor: storedText(request.actor, LIMITS.reason),
        because: storedText(request.because, LIMITS.reason),
      }),
  }),
}

/** Returns the entry for the audit trail. */
export function acknowledgeEntry(
  { run, targets, undo, actor, because }: AcknowledgeRequest,
  source: string,
  result: AcknowledgeResult,
) {
  return {
    actor,
    action: 'acknowledge',
    source,
    run,
    target: targets?.length === 1 ? targets[0]! : null,
    because,
    evidence: null,
    before: { acknowledged: undo },
    after: { acknowledged: !undo, count: result.targets },
  }
}
