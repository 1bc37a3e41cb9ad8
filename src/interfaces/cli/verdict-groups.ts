import { errorKind } from '../../presenters/fingerprint.ts'
import type { Verdict } from '../../core/model/verdict.ts'

/** Verdicts that differ only in their targets or runs, and in the numbers of their reasons. */
export type VerdictGroup = {
  /** Stands for all of them. */
  readonly first: Verdict
  readonly all: readonly Verdict[]
}

/** Groups verdicts by source, action, outcome and reason, the largest group first. */
export function groupVerdicts(verdicts: readonly Verdict[]): VerdictGroup[] {
  const groups = Map.groupBy(verdicts, (verdict) => {
    const { source, action, from, to, target, row, applied, blockedBy, because } = verdict
    const isRun = target === null || row !== undefined
    return JSON.stringify([source, action, from, to, isRun, applied, blockedBy, errorKind(because)])
  })
  return [...groups.values()]
    .map((all) => ({ first: all[0]!, all }))
    .sort((a, b) => b.all.length - a.all.length)
}
