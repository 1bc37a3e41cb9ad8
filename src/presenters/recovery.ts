import { hash } from 'node:crypto'
import { RUN_AFTER, TARGET_AFTER, type Verdict } from '../core/model/verdict.ts'
import type { JudgedRun } from '../core/recovery/assess.ts'
import type { Recovery } from '../core/recovery/recover.ts'
import { judgedView, verdictView } from './view.ts'

/** A recovery as people read it. */
export type Sorted = {
  readonly active: readonly JudgedRun[]
  /** What recovery does by itself. */
  readonly deeds: readonly Verdict[]
  /** What is left to a person. */
  readonly theirs: readonly Verdict[]
  readonly away: Recovery['away']
}

/** What is done, and what a person has to decide. */
export function sortOut({ active, verdicts, away }: Recovery): Sorted {
  const cleanedByThemselves = new Set(
    active.filter(({ policy }) => policy.autoClean).map(({ run }) => run.id),
  )
  const isDeed = ({ action, run, target, cannot }: Verdict): boolean => {
    if (cannot !== undefined) return false
    return action === 'abandon'
      ? cleanedByThemselves.has(run)
      : (target === null ? RUN_AFTER : TARGET_AFTER)[action] !== undefined
  }
  return {
    active,
    deeds: verdicts.filter(isDeed),
    theirs: verdicts.filter((verdict) => !isDeed(verdict)),
    away,
  }
}

/** What `recover` answers. */
export function recoveryView({ active, verdicts, away }: Recovery, dryRun: boolean) {
  return {
    active: active.map(judgedView),
    verdicts: verdicts.map(verdictView),
    applied: verdicts.filter(({ applied }) => applied).length,
    away: [...away],
    dryRun,
  }
}

const ACTIVE_MAX = 200
const VERDICTS_MAX = 500

/** The same for those who look from afar: of however much there is the first, and how much there is. */
export function boundedRecoveryView({ active, deeds, theirs, away }: Sorted, dryRun: boolean) {
  const verdicts = [...deeds, ...theirs]
  return {
    active: active.slice(0, ACTIVE_MAX).map(judgedView),
    activeTotal: active.length,
    verdicts: verdicts.slice(0, VERDICTS_MAX).map(verdictView),
    total: verdicts.length,
    applied: verdicts.filter(({ applied }) => applied).length,
    away: [...away],
    dryRun,
  }
}

/**
 * A short name for what would be done, whatever the order: the same deeds have the same. It goes with a preview, so that
 * who confirms that does this and nothing else.
 */
export function planOf(deeds: readonly Verdict[]): string {
  const lines = deeds.map(({ run, target, action, from, to }) =>
    JSON.stringify([run, target, action, from, to]),
  )
  return hash('sha256', lines.sort().join('\n')).slice(0, 16)
}
