import * as v from 'valibot'
import { TRUSTED_OBSERVER } from '../../../core/decide/liveness.ts'
import { parseDuration } from '../../../core/model/time.ts'
import { cleanRuns, classifyRuns, type ClassifiedRuns } from '../../../core/recovery/clean.ts'
import { REAL_CLOCK, type Clock } from '../../../core/host/clock.ts'
import type { OperatorContext } from '../../../core/recovery/context.ts'
import { recover, toRunVerdict, type Recovery } from '../../../core/recovery/recover.ts'
import { cleanAction, recoverAction } from '../../../presenters/bulk-actions.ts'
import { cleaningView, selectRuns } from '../../../presenters/cleaning.ts'
import { boundedRecoveryView, planHash, classifyVerdicts } from '../../../presenters/recovery.ts'
import { revertibleRuns, undoByRevert } from '../../../presenters/undo.ts'
import { findRun } from '../../../presenters/find.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Verdict } from '../../../core/model/verdict.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import { limitConcurrency } from '../limit-concurrency.ts'
import { planChanged } from '../http-error.ts'
import { defineRoute } from '../../../contracts/route.ts'
import { duration, id, several, source, text } from '../../../presenters/schema/common.ts'
import { cleaning, plan, recovery } from '../../../presenters/schema/recovery.ts'

const dryRun = v.optional(v.boolean(), false)
const many = <T extends v.BaseSchema<unknown, string, v.BaseIssue<unknown>>>(of: T) =>
  v.optional(v.pipe(v.array(of), v.maxLength(50)), [])

/** What would be recovered or cleaned, and doing it: what was looked at, or nothing. */
export const RECOVERY_ROUTES = [
  defineRoute({
    method: 'GET',
    path: '/api/recovery',
    summary: 'What recovery would do now.',
    role: 'viewer',
    query: v.strictObject({
      timeout: v.optional(duration),
      source: several(source),
      group: several(text),
    }),
    response: recovery,
    handle: (call) =>
      limitConcurrency(call, async () => {
        const { query, context, signal } = call
        const selection = { timeout: query.timeout, sources: query.source, groups: query.group }
        return recoveryResponse(selection, await previewRecovery(context, selection, signal), true)
      }),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/recovery',
    summary: 'Recover orphans now: what the dead and the silent held. Never touches the living.',
    role: 'operator',
    body: v.strictObject({
      timeout: v.optional(duration),
      sources: many(source),
      groups: many(text),
      plan: v.optional(plan),
      dryRun,
    }),
    response: recovery,
    async handle({ body, context, signal }) {
      const seen = await previewRecovery(context, body, signal)
      if (body.dryRun) return recoveryResponse(body, seen, true)
      const { planned, needsAttention } = classifyVerdicts(seen)
      if (body.plan !== undefined && planHash(planned) !== body.plan) {
        throw planChanged(recoveryResponse(body, seen, true))
      }
      // It has just listened: there is no need to do so again.
      const only = new Set(planned.map(({ run, target }) => target ?? run))
      const { verdicts } = await recover(context, {
        ...toRecoverOptions(body),
        observer: TRUSTED_OBSERVER,
        only,
      })
      return recoveryResponse(body, { ...seen, verdicts: [...verdicts, ...needsAttention] }, false)
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/clean',
    summary: 'Resumable and dead runs side by side.',
    role: 'viewer',
    query: v.strictObject({ age: v.optional(duration) }),
    response: cleaning,
    async handle({ query, context }) {
      const classified = await classifyRuns(context, parseDuration(query.age) ?? undefined)
      return cleaningResponse(query, classified, [], true)
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/clean',
    summary: 'Mark the dead as “Timeout – auto-cleaned”. Nothing is deleted.',
    role: 'operator',
    body: v.strictObject({
      runs: v.optional(v.pipe(v.array(id), v.minLength(1), v.maxLength(500))),
      age: v.optional(duration),
      plan: v.optional(plan),
      dryRun,
    }),
    response: cleaning,
    async handle({ body, context }) {
      const { runs, age, dryRun } = body
      const all = await classifyRuns(context, parseDuration(age) ?? undefined)
      const named = await Promise.all((runs ?? []).map((run) => findRun(context.store, run)))
      const { classified } = runs ? selectRuns(all, named, false) : { classified: all }
      const preview = cleaningResponse(body, classified, [], true)
      if (dryRun) return preview
      if (body.plan !== undefined && preview.plan !== body.plan) throw planChanged(preview)
      return cleaningResponse(body, classified, await cleanRuns(context, classified.dead), false)
    },
  }),
]

type RecoverySelection = {
  readonly timeout?: string | undefined
  readonly sources: readonly string[]
  readonly groups: readonly string[]
}

function toRecoverOptions({ timeout, sources, groups }: RecoverySelection) {
  const olderThanMs = parseDuration(timeout)
  return { sources, groups, ...(olderThanMs !== null && { olderThanMs }) }
}

function previewRecovery(
  context: OperatorContext,
  selection: RecoverySelection,
  signal: AbortSignal,
): Promise<Recovery> {
  const clock = clockUntil(signal)
  return recover({ ...context, clock }, { ...toRecoverOptions(selection), dryRun: true })
}

/** Who has left need not be listened for, and must not be answered as if one had. */
function clockUntil(signal: AbortSignal): Clock {
  return {
    ...REAL_CLOCK,
    sleep: async (ms) => {
      await REAL_CLOCK.sleep(ms, signal)
      signal.throwIfAborted()
    },
  }
}

function recoveryResponse(selection: RecoverySelection, recovery: Recovery, dryRun: boolean) {
  const plan = classifyVerdicts(recovery)
  const { planned } = plan
  const { timeout, sources, groups } = selection
  return {
    ...boundedRecoveryView(plan, dryRun),
    plan: planHash(planned),
    planned: planned.length,
    command: unstuckCommand('recover', [], { yes: true, timeout, source: sources, group: groups }),
    actions: dryRun && planned.length > 0 ? [recoverAction(selection, planned.length)] : [],
    undo: dryRun ? null : undoByRevert(revertibleRuns(planned)),
  }
}

function cleaningResponse(
  {
    runs = [],
    age,
  }: { readonly runs?: readonly string[] | undefined; readonly age?: string | undefined },
  classified: ClassifiedRuns,
  cleaned: readonly Verdict[],
  dryRun: boolean,
) {
  const wanted = classified.dead.map((assessed) => toRunVerdict(assessed, false))
  const view = cleaningView(classified, cleaned, dryRun)
  return {
    ...view,
    dead: view.dead.map((run) => ({
      ...run,
      actions: dryRun ? [cleanAction({ runs: [run.id] })] : [],
    })),
    actions: dryRun && wanted.length > 0 ? [cleanAction({ age }, wanted.length)] : [],
    plan: planHash(wanted),
    command: unstuckCommand('clean', runs.map(shortId), { auto: true, age }),
    undo: dryRun ? null : undoByRevert(revertibleRuns(cleaned)),
  }
}
