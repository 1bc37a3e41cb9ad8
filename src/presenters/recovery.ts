import { hash } from 'node:crypto'
import { RUN_STATUS_AFTER, TARGET_STATUS_AFTER, type Verdict } from '../core/model/verdict.ts'
import type { Severity } from '../core/decide/health.ts'
import type { Millis } from '../core/model/time.ts'
import type { AssessedRun } from '../core/recovery/assess.ts'
import type { Recovery } from '../core/recovery/recover.ts'
import { assessedRunView, verdictView } from './view.ts'

/** A recovery as people read it. */
export type RecoveryPlan = {
  readonly active: readonly AssessedRun[]
  readonly now: Millis
  readonly severity: Severity
  /** What recovery does by itself. */
  readonly planned: readonly Verdict[]
  /** What is left to a person. */
  readonly needsAttention: readonly Verdict[]
  readonly unreadable: Recovery['assessment']['unreadable']
}

/** What is done, and what a person has to decide. */
export function classifyVerdicts({ assessment, verdicts }: Recovery): RecoveryPlan {
  const { runs: active, now, severity, unreadable } = assessment
  const autoCleaned = new Set(
    active.filter(({ policy }) => policy.autoClean).map(({ run }) => run.id),
  )
  const isMutation = ({ action, run, target, blockedBy }: Verdict): boolean => {
    if (blockedBy !== undefined) return false
    return action === 'abandon'
      ? autoCleaned.has(run)
      : (target === null ? RUN_STATUS_AFTER : TARGET_STATUS_AFTER)[action] !== undefined
  }
  return {
    active,
    now,
    severity,
    planned: verdicts.filter(isMutation),
    needsAttention: verdicts.filter((verdict) => !isMutation(verdict)),
    unreadable,
  }
}

/** What `recover` answers. */
export function recoveryView({ assessment, verdicts }: Recovery, dryRun: boolean) {
  const { severity, runs, unreadable } = assessment
  return {
    severity,
    active: runs.map(assessedRunView),
    verdicts: verdicts.map(verdictView),
    applied: verdicts.filter(({ applied }) => applied).length,
    unreadable: [...unreadable],
    dryRun,
  }
}

const ACTIVE_MAX = 200
const VERDICTS_MAX = 500

/** The same for those who look from afar: of however much there is the first, and how much there is. */
export function boundedRecoveryView(
  { severity, active, planned, needsAttention, unreadable }: RecoveryPlan,
  dryRun: boolean,
) {
  const verdicts = [...planned, ...needsAttention]
  return {
    severity,
    active: active.slice(0, ACTIVE_MAX).map(assessedRunView),
    activeTotal: active.length,
    verdicts: verdicts.slice(0, VERDICTS_MAX).map(verdictView),
    total: verdicts.length,
    applied: verdicts.filter(({ applied }) => applied).length,
    unreadable: [...unreadable],
    dryRun,
  }
}

/**
 * A short name for what would be done, whatever the order: the same deeds have the same. It goes with a preview, so that
 * who confirms that does this and nothing else.
 */
export function planHash(planned: readonly Verdict[]): string {
  const lines = planned.map(({ run, target, action, from, to }) =>
    JSON.stringify([run, target, action, from, to]),
  )
  return hash('sha256', lines.sort().join('\n')).slice(0, 16)
}
