import { worstSeverity } from '../core/decide/health.ts'
import { COMMAND_STORE, type Execution } from '../features/commands/store/store.ts'
import { shortId } from '../core/model/id.ts'
import { isLive, type Counts, type Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import type { Millis } from '../core/model/time.ts'
import { unstuckCommand } from '../lib/text/shell-command.ts'
import { assessRun, type AssessContext, type AssessedRun } from '../core/recovery/assess.ts'
import { loadRevertFacts } from '../core/recovery/operator-actions.ts'
import type { AuditEntry, Store } from '../core/store/store.ts'
import { runActions, type AllowedAction } from './allowed-actions.ts'
import { formatRunStatus } from './format.ts'
import type { Presented } from './presented.ts'
import { recentSamples, type RecentSamples } from './run-pace.ts'
import { runSections } from './run-sections.ts'
import { listedRunView } from './runs.ts'
import { auditView, countsView, executionView, ownerView, targetView } from './view.ts'

/** An entry of the audit trail, and the key of the target it is about. */
export type AuditEntryWithKey = { readonly entry: AuditEntry; readonly key: string | null }

/** All that is reported about one run. */
export type RunReport = {
  readonly run: Run
  readonly assessed: AssessedRun
  readonly groups: readonly { readonly group: string | null; readonly counts: Counts }[]
  readonly needsAttention: readonly Target[]
  /** Of its command, newest first; none for a crawl. */
  readonly executions: readonly Execution[]
  readonly audit: readonly AuditEntryWithKey[]
  readonly actions: readonly AllowedAction[]
  readonly samples: RecentSamples
  readonly now: Millis
}

const NEEDS_ATTENTION_MAX = 10
const AUDIT_MAX = 10
const EXECUTIONS_MAX = 10
/** Entries of the audit trail that decide whether `revert` is offered. */
const REVERT_AUDIT_MAX = 50

/** Reads all that is reported about one run. */
export async function loadRunReport(context: AssessContext, run: Run): Promise<RunReport> {
  const { store } = context
  const now = await store.now()
  const assessed = await assessRun(context, run)
  return {
    run,
    assessed,
    groups: await store.countsByGroup(run.id),
    needsAttention: await targetsNeedingAttention(store, run),
    audit: await recentAudit(store, run),
    actions: runActions({
      ...(await loadRevertFacts(store, run, REVERT_AUDIT_MAX)),
      isDead: false,
    }),
    executions: await (await store.extend(COMMAND_STORE)).executions(run.id, EXECUTIONS_MAX),
    samples: isLive(run.status) ? await recentSamples(store, now) : new Map(),
    now,
  }
}

type RunReportView = ReturnType<typeof runReportView>

/** `show`, the run's page in the dashboard, and the detail of `top`. */
export function presentRun(report: RunReport): Presented<RunReportView> {
  const { run, assessed, needsAttention } = report
  const { health } = assessed
  const isLiveRun = isLive(run.status)
  const severity = worstSeverity([
    ...(isLiveRun ? [health.severity] : []),
    ...(needsAttention.length > 0 ? ['attention' as const] : []),
  ])
  const { text } = formatRunStatus(run.status)
  const state = isLiveRun ? `${text}, ${health.state}` : text
  return {
    view: runReportView(report),
    severity,
    summary: `Run ${shortId(run.id)} of ${run.source} is ${state}.`,
    sections: runSections(report),
    actions: report.actions,
  }
}

function runReportView(report: RunReport) {
  const { run, assessed, groups, needsAttention, executions, audit, actions, samples, now } = report
  const { owner, health } = assessed
  const isLiveRun = isLive(run.status)
  return {
    run: { ...listedRunView(run, isLiveRun ? health : null, samples, now), input: run.input },
    counts: countsView(run.counts),
    groups: groups.map(({ group, counts }) => ({ group, ...countsView(counts) })),
    needsAttention: needsAttention.map(targetView),
    executions: executions.map(executionView),
    audit: audit.map(({ entry, key }) => ({ ...auditView(entry), key })),
    owner: isLiveRun && owner ? ownerView(owner) : null,
    commands: ['show', 'explain']
      .map((verb) => unstuckCommand(verb, [shortId(run.id)]))
      .concat(actions.map(({ command }) => command)),
  }
}

/** Returns targets that need attention, some of each kind. */
async function targetsNeedingAttention(store: Store, run: Run): Promise<Target[]> {
  const found: Target[] = []
  for (const status of ['stuck', 'parked', 'failed'] as const) {
    if (run.counts.targets[status] === 0) continue
    found.push(
      ...(await store.targets(run.id, { statuses: [status], limit: NEEDS_ATTENTION_MAX })).items,
    )
  }
  return found
}

/** Returns the newest entries, oldest first. */
async function recentAudit(store: Store, run: Run): Promise<AuditEntryWithKey[]> {
  const last = await store.audit({ run: run.id, newestFirst: true, limit: AUDIT_MAX })
  return Promise.all(
    last.reverse().map(async (entry) => {
      const target = entry.target === null ? null : await store.target(entry.target)
      return { entry, key: target?.key ?? null }
    }),
  )
}
