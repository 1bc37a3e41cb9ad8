import { TRUSTED_OBSERVER } from '../core/decide/liveness.ts'
import { REAL_CLOCK, type Clock } from '../core/host/clock.ts'
import { PlanChangedError } from '../core/model/errors.ts'
import type { Run } from '../core/model/run.ts'
import { parseDuration } from '../core/model/time.ts'
import type { Verdict } from '../core/model/verdict.ts'
import { classifyRuns, cleanRuns } from '../core/recovery/clean.ts'
import type { OperatorContext } from '../core/recovery/context.ts'
import { recover, type Recovery } from '../core/recovery/recover.ts'
import { presentCleaning, selectRuns } from './cleaning.ts'
import { toJson } from './presented.ts'
import { afterRecovery, boundedRecovery, plannedSubjects, presentRecovery } from './recovery.ts'

type PlanRequest = {
  readonly dryRun?: boolean | undefined
  /** The plan of a preview. The call is refused if it would now do something else. */
  readonly plan?: string | undefined
}

export type RecoverRequest = PlanRequest & {
  readonly timeout?: string | undefined
  readonly sources?: readonly string[] | undefined
  readonly groups?: readonly string[] | undefined
  readonly signal?: AbortSignal | undefined
}

/** Applies what a preview of the recovery shows. Throws a `PlanChangedError` if it differs from `plan`. */
export async function recoverByPlan(context: OperatorContext, request: RecoverRequest) {
  const { timeout, sources = [], groups = [], signal, plan } = request
  const olderThanMs = parseDuration(timeout)
  const selection = { sources, groups, ...(olderThanMs !== null && { olderThanMs }) }
  const present = (recovery: Recovery, dryRun: boolean) =>
    toJson(boundedRecovery(presentRecovery(recovery, { dryRun, timeout, sources, groups })))
  const clock = clockUntil(signal)
  const seen = await recover({ ...context, clock }, { ...selection, dryRun: true })
  const preview = present(seen, true)
  if (request.dryRun) return preview
  if (plan !== undefined && plan !== preview.plan) throw new PlanChangedError(preview)
  // The preview has just waited for heartbeats.
  const { verdicts } = await recover(context, {
    ...selection,
    observer: TRUSTED_OBSERVER,
    only: plannedSubjects(seen),
  })
  return present(afterRecovery(seen, verdicts), false)
}

/** A caller that has left gets no answer, so nothing waits for heartbeats. */
function clockUntil(signal: AbortSignal | undefined): Clock {
  return {
    ...REAL_CLOCK,
    sleep: async (ms) => {
      await REAL_CLOCK.sleep(ms, signal)
      signal?.throwIfAborted()
    },
  }
}

/** Marks dead runs: `named`, or all. Throws a `PlanChangedError` if they are not those of `plan`. */
export async function cleanByPlan(
  context: OperatorContext,
  named: readonly Run[] | undefined,
  { dryRun: isPreview, plan, age }: PlanRequest & { readonly age?: string | undefined },
) {
  const all = await classifyRuns(context, parseDuration(age) ?? undefined)
  const { classified } = named ? selectRuns(all, named, false) : { classified: all }
  const runs = named?.map(({ id }) => id)
  const present = (cleaned: readonly Verdict[], dryRun: boolean) =>
    toJson(presentCleaning(classified, cleaned, { runs, age, dryRun }))
  const preview = present([], true)
  if (isPreview) return preview
  if (plan !== undefined && plan !== preview.plan) throw new PlanChangedError(preview)
  return present(await cleanRuns(context, classified.dead), false)
}
