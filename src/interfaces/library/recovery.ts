import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import { PlanChangedError } from '../../core/model/errors.ts'
import { shortId } from '../../core/model/id.ts'
import type { Run } from '../../core/model/run.ts'
import { unstuckCommand } from '../../core/model/shell-command.ts'
import { parseDuration } from '../../core/model/time.ts'
import type { Verdict } from '../../core/model/verdict.ts'
import { classifyRuns, cleanRuns } from '../../core/recovery/clean.ts'
import type { OperatorContext } from '../../core/recovery/context.ts'
import { recover, toRunVerdict, type Recovery } from '../../core/recovery/recover.ts'
import { cleaningView, selectRuns } from '../../presenters/cleaning.ts'
import { boundedRecoveryView, classifyVerdicts, planHash } from '../../presenters/recovery.ts'
import type * as results from '../../presenters/results.ts'
import { revertibleRuns, undoByRevert } from '../../presenters/undo.ts'
import type { CleanOptions, RecoverOptions } from './options.ts'

/** Recovers what a preview shows; with a plan, only if the preview is still that plan. */
export async function recoverByPlan(
  context: OperatorContext,
  options: RecoverOptions,
): Promise<results.Recovery> {
  const { dryRun = false, plan, olderThan, sources = [], groups = [], signal } = options
  const olderThanMs = parseDuration(olderThan)
  const selection = { sources, groups, ...(olderThanMs !== null && { olderThanMs }) }
  const present = (recovery: Recovery, isPreview: boolean) => {
    const classified = classifyVerdicts(recovery)
    const { planned } = classified
    const flags = { yes: true, timeout: olderThan, source: sources, group: groups }
    return {
      ...boundedRecoveryView(classified, isPreview),
      plan: planHash(planned),
      planned: planned.length,
      command: unstuckCommand('recover', [], flags),
      undo: isPreview ? null : undoByRevert(revertibleRuns(planned)),
    }
  }
  const clock = clockUntil(signal)
  const seen = await recover({ ...context, clock }, { ...selection, dryRun: true })
  const preview = present(seen, true)
  if (dryRun) return preview
  if (plan !== undefined && plan !== preview.plan) throw new PlanChangedError(preview)
  const { planned, needsAttention } = classifyVerdicts(seen)
  const only = new Set(planned.map(({ run, target }) => target ?? run))
  // The preview has watched silent workers already.
  const { verdicts } = await recover(context, { ...selection, observer: TRUSTED_OBSERVER, only })
  return present({ ...seen, verdicts: [...verdicts, ...needsAttention] }, false)
}

function clockUntil(signal: AbortSignal | undefined): Clock {
  return {
    ...REAL_CLOCK,
    sleep: async (ms) => {
      await REAL_CLOCK.sleep(ms, signal)
      signal?.throwIfAborted()
    },
  }
}

/** Marks dead runs: the named ones, or all; with a plan, only if the dead runs are still those of the plan. */
export async function cleanByPlan(
  context: OperatorContext,
  named: readonly Run[] | undefined,
  { dryRun = false, plan, abandonAfter }: CleanOptions,
): Promise<results.Cleaning> {
  const all = await classifyRuns(context, parseDuration(abandonAfter) ?? undefined)
  const { classified } = named ? selectRuns(all, named, false) : { classified: all }
  const wanted = planHash(classified.dead.map((one) => toRunVerdict(one, false)))
  const ids = (named ?? []).map(({ id }) => shortId(id))
  const present = (cleaned: readonly Verdict[], isPreview: boolean) => ({
    ...cleaningView(classified, cleaned, isPreview),
    plan: wanted,
    command: unstuckCommand('clean', ids, { auto: true, age: abandonAfter }),
    undo: isPreview ? null : undoByRevert(revertibleRuns(cleaned)),
  })
  if (dryRun) return present([], true)
  if (plan !== undefined && plan !== wanted) throw new PlanChangedError(present([], true))
  return present(await cleanRuns(context, classified.dead), false)
}
