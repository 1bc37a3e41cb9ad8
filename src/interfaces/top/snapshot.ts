import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { LIVE_STATUSES, RUN_STATUSES, isLive } from '../../core/model/run.ts'
import type { Millis } from '../../core/model/time.ts'
import { assess, CLAIMS_MAX } from '../../core/recovery/assess.ts'
import type { OperatorContext } from '../../core/recovery/context.ts'
import { recover } from '../../core/recovery/recover.ts'
import type { AuditEntry, HeldTarget } from '../../core/store/store.ts'
import {
  groupDeadLetters,
  type DeadLetterGroups,
  type DeadLetterGroup,
} from '../../presenters/dead-letters.ts'
import { explainRunOrTarget, type ExplanationWithPolicy } from '../../presenters/explain.ts'
import { listRuns, type ListedRun } from '../../presenters/runs.ts'
import { classifyVerdicts, type RecoveryPlan } from '../../presenters/recovery.ts'
import { loadRunReport, type RunReport } from '../../presenters/run.ts'
import type { Settings } from '../../contracts/settings.ts'
import { SEVERITY_STYLE } from '../../presenters/format.ts'
import { workerViews } from '../../presenters/workers.ts'
import { loadOverview, presentOverview } from '../../presenters/overview.ts'
import type { WorkerView } from '../../presenters/view.ts'
import type { TopState, View } from './state.ts'

/** What was seen at one moment: the answer that is always shown, and what the view in front needs. */
export type Snapshot = {
  readonly now: Millis
  readonly where: string
  /** "Is anything stuck?", in one line. */
  readonly summary: string
  readonly style: 'bad' | 'warn' | 'good'
  readonly viewData: ViewData
  /** Of the row that is open; null while none is, or it is gone. */
  readonly detail: { readonly row: string; readonly page: Detail } | null
}

export type ViewData =
  | { readonly view: 'runs'; readonly runs: readonly ListedRun[] }
  | { readonly view: 'workers'; readonly workers: readonly WorkerView[] }
  | { readonly view: 'recovery'; readonly recovery: RecoveryPlan }
  | ({ readonly view: 'letters' } & Pick<DeadLetterGroups, 'groups' | 'isPartial'>)
  | { readonly view: 'history'; readonly entries: readonly AuditEntry[] }

export type Detail =
  | { readonly kind: 'run'; readonly page: RunReport }
  | {
      readonly kind: 'worker'
      readonly worker: WorkerView
      readonly claimed: readonly HeldTarget[]
    }
  | {
      readonly kind: 'verdict'
      readonly explained: ExplanationWithPolicy
      readonly preset: string | null
    }
  | { readonly kind: 'letter'; readonly group: DeadLetterGroup; readonly isPartial: boolean }
  | { readonly kind: 'entry'; readonly entry: AuditEntry }

/** By what is looked: the door, and the settings that explain a verdict. */
export type TopContext = { readonly operator: OperatorContext; readonly settings: Settings }

const LIVE_MAX = 500
const ENDED_MAX = 100
const ENTRIES_MAX = 500
const ENDED_STATUSES = RUN_STATUSES.filter((status) => !isLive(status))

/** Looks once. Only what the view in front shows is asked for. */
export async function takeSnapshot(
  context: TopContext,
  { view, screen }: TopState,
): Promise<Snapshot> {
  const { store } = context.operator
  const overview = await loadOverview(context.operator)
  const { summary, severity } = presentOverview(overview)
  const viewData = await loadView(context, view)
  return {
    now: overview.assessment.now,
    where: store.location,
    summary,
    style: SEVERITY_STYLE[severity],
    viewData,
    detail: screen.kind === 'detail' ? await loadDetailOf(context, viewData, screen.row) : null,
  }
}

async function loadDetailOf(
  context: TopContext,
  viewData: ViewData,
  row: string,
): Promise<Snapshot['detail']> {
  const page = await loadDetail(context, viewData, row)
  return page && { row, page }
}

async function loadView({ operator }: TopContext, view: View): Promise<ViewData> {
  const { store } = operator
  switch (view) {
    case 'runs': {
      const [live, ended] = await Promise.all([
        listRuns(operator, { statuses: LIVE_STATUSES, limit: LIVE_MAX }),
        listRuns(operator, { statuses: ENDED_STATUSES, limit: ENDED_MAX }),
      ])
      return { view, runs: [...live.items, ...ended.items] }
    }
    case 'workers':
      return { view, workers: workerViews(await assess(operator)) }
    case 'recovery':
      // A look changes nothing, so it need not listen first; the plan behind R does.
      return {
        view,
        recovery: classifyVerdicts(
          await recover(operator, { dryRun: true, observer: TRUSTED_OBSERVER }),
        ),
      }
    case 'letters':
      return { view, ...(await groupDeadLetters(store, {})) }
    case 'history':
      return { view, entries: await store.audit({ newestFirst: true, limit: ENTRIES_MAX }) }
  }
}

async function loadDetail(
  context: TopContext,
  viewData: ViewData,
  row: string,
): Promise<Detail | null> {
  const { store } = context.operator
  switch (viewData.view) {
    case 'runs': {
      const run = await store.run(row)
      return run && { kind: 'run', page: await loadRunReport(context.operator, run) }
    }
    case 'workers': {
      const worker = viewData.workers.find(({ id }) => id === row)
      return worker
        ? { kind: 'worker', worker, claimed: await store.claimsOf(row, null, CLAIMS_MAX) }
        : null
    }
    case 'recovery': {
      const found = (await store.target(row)) ?? (await store.run(row))
      if (!found) return null
      const explained = await explainRunOrTarget(context.operator, context.settings, found)
      return { kind: 'verdict', explained, preset: context.settings.preset }
    }
    case 'letters': {
      const group = viewData.groups.find(({ fingerprint }) => fingerprint === row)
      return group ? { kind: 'letter', group, isPartial: viewData.isPartial } : null
    }
    case 'history': {
      const entry = viewData.entries.find(({ id }) => String(id) === row)
      return entry ? { kind: 'entry', entry } : null
    }
  }
}
