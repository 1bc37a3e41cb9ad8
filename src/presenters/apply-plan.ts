import { TRUSTED_OBSERVER } from '../core/decide/liveness.ts'
import { REAL_CLOCK, type Clock } from '../core/host/clock.ts'
import { PlanChangedError } from '../core/model/errors.ts'
import type { Id } from '../core/model/id.ts'
import type { Run } from '../core/model/run.ts'
import { parseDuration } from '../core/model/time.ts'
import type { Verdict } from '../core/model/verdict.ts'
import { assess } from '../core/recovery/assess.ts'
import { classifyRuns, cleanRuns } from '../core/recovery/clean.ts'
import type { OperatorContext } from '../core/recovery/context.ts'
import { recover, type Recovery } from '../core/recovery/recover.ts'
import { presentCleaning, selectRuns, type CleaningView } from './cleaning.ts'
import { endLeftovers, listLeftovers, type Leftover } from '../operator/leftover-processes.ts'
import { loadAttention, type FoundAttention } from './load-attention.ts'
import { toJson, type Presented } from './presented.ts'
import { presentRecovery, type RecoveryView } from './recovery.ts'
import { isPlanned } from './verdict.ts'

/** A preview, and a function that applies what it shows, as far as it is unchanged. */
export type Planned<View extends object> = {
  readonly preview: Presented<View>
  readonly apply: () => Promise<Presented<View>>
}

type RecoverySelection = {
  readonly timeout?: string | undefined
  readonly sources?: readonly string[] | undefined
  readonly groups?: readonly string[] | undefined
  readonly signal?: AbortSignal | undefined
  /** Processes of earlier copies are reported, not ended. */
  readonly keepsProcesses?: boolean
}

export async function planRecovery(
  context: OperatorContext,
  { timeout, sources = [], groups = [], signal, keepsProcesses }: RecoverySelection,
): Promise<Planned<RecoveryView>> {
  const olderThanMs = parseDuration(timeout)
  const selection = { sources, groups, ...(olderThanMs !== null && { olderThanMs }) }
  const present = (
    recovery: Recovery,
    found: FoundAttention,
    dryRun: boolean,
    ended?: readonly Leftover[],
  ) =>
    presentRecovery(recovery, {
      found,
      dryRun,
      timeout,
      sources,
      groups,
      leftovers,
      ...(ended && { ended }),
    })
  const clock = signal ? clockUntil(signal) : context.clock
  const seen = await recover({ ...context, clock }, { ...selection, dryRun: true })
  const leftovers = await listLeftovers(context.store, selection)
  return {
    preview: present(seen, await loadAttention(context, seen.assessment), true),
    async apply() {
      // The preview has just waited for heartbeats.
      const observer = TRUSTED_OBSERVER
      const only = plannedSubjects(seen)
      const { verdicts } = await recover(context, { ...selection, observer, only })
      const ended = keepsProcesses
        ? []
        : await endLeftovers(context.store, leftovers, context.actor)
      const found = await loadAttention(context, await assess(context))
      return present(afterRecovery(seen, verdicts), found, false, ended)
    },
  }
}

/** A caller that has left gets no answer, so nothing waits for heartbeats. */
function clockUntil(signal: AbortSignal): Clock {
  return {
    ...REAL_CLOCK,
    sleep: async (ms) => {
      await REAL_CLOCK.sleep(ms, signal)
      signal.throwIfAborted()
    },
  }
}

/** Plans to mark dead runs: `named`, or all. */
export async function planCleaning(
  context: OperatorContext,
  named?: readonly Run[],
  age?: string,
): Promise<Planned<CleaningView>> {
  const all = await classifyRuns(context, parseDuration(age) ?? undefined)
  const { classified } = named ? selectRuns(all, named, false) : { classified: all }
  const runs = named?.map(({ id }) => id)
  const present = (cleaned: readonly Verdict[], dryRun: boolean) =>
    presentCleaning(classified, cleaned, { runs, age, dryRun })
  return {
    preview: present([], true),
    apply: async () => present(await cleanRuns(context, classified.dead), false),
  }
}

/** A preview after its verdicts were applied. A verdict that was not reached again changed meanwhile. */
function afterRecovery(preview: Recovery, applied: readonly Verdict[]): Recovery {
  const idOf = ({ run, target }: Verdict): string => target ?? run
  const byId = new Map(applied.map((verdict) => [idOf(verdict), verdict]))
  const verdicts = preview.verdicts.map((verdict) => byId.get(idOf(verdict)) ?? verdict)
  return { ...preview, verdicts }
}

/** What the verdicts of a preview that recovery applies by itself are about. */
function plannedSubjects({ verdicts }: Recovery): Set<Id> {
  return new Set(verdicts.filter(isPlanned).map(({ run, target }) => target ?? run))
}

const ACTIVE_MAX = 200
const VERDICTS_MAX = 500

/** The same for HTTP: of long lists the first entries, with the totals. */
function boundedRecovery(presented: Presented<RecoveryView>): Presented<RecoveryView> {
  const { view } = presented
  const active = view.active.slice(0, ACTIVE_MAX)
  return { ...presented, view: { ...view, active, verdicts: view.verdicts.slice(0, VERDICTS_MAX) } }
}

type PlanRequest = {
  readonly dryRun?: boolean | undefined
  /** The plan of a preview. The call is refused if it would now do something else. */
  readonly plan?: string | undefined
}

/** Applies what a preview of the recovery shows. Throws a `PlanChangedError` if it differs from `plan`. */
export async function recoverByPlan(
  context: OperatorContext,
  request: PlanRequest & RecoverySelection,
) {
  return applyPlan(await planRecovery(context, request), request, (presented) =>
    toJson(boundedRecovery(presented)),
  )
}

/** Marks dead runs: `named`, or all. Throws a `PlanChangedError` if they are not those of `plan`. */
export async function cleanByPlan(
  context: OperatorContext,
  named: readonly Run[] | undefined,
  request: PlanRequest & { readonly age?: string | undefined },
) {
  return applyPlan(await planCleaning(context, named, request.age), request, toJson)
}

async function applyPlan<View extends { readonly plan: string }, Json>(
  { preview, apply }: Planned<View>,
  { dryRun, plan }: PlanRequest,
  toJson: (presented: Presented<View>) => Json,
): Promise<Json> {
  if (dryRun) return toJson(preview)
  if (plan !== undefined && plan !== preview.view.plan) throw new PlanChangedError(toJson(preview))
  return toJson(await apply())
}
