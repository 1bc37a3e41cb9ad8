import { canCancel } from '../core/decide/cancel.ts'
import type { Execution } from '../core/model/execution.ts'
import { shortId } from '../core/model/id.ts'
import { isLive, type Counts, type Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import type { Millis } from '../core/model/time.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { assessRun, type AssessContext, type AssessedRun } from '../core/recovery/assess.ts'
import type { AuditEntry, Store } from '../core/store/store.ts'
import { auditView, countsView, executionView, ownerView, runView, targetView } from './view.ts'
import { listedRunView } from './runs.ts'
import { recentSamples, type RecentSamples } from './run-pace.ts'

/** An entry of the audit trail, and the key of the target it is about. */
export type AuditEntryWithKey = { readonly entry: AuditEntry; readonly key: string | null }

/** One run, with all that its page shows. */
export type RunReport = {
  readonly run: Run
  readonly assessed: AssessedRun
  readonly groups: readonly { readonly group: string | null; readonly counts: Counts }[]
  readonly needsAttention: readonly Target[]
  /** Of its command, newest first; none for a crawl. */
  readonly executions: readonly Execution[]
  readonly audit: readonly AuditEntryWithKey[]
  readonly now: Millis
}

const NEEDS_ATTENTION_MAX = 10
const AUDIT_MAX = 10
const EXECUTIONS_MAX = 10

/** Looks everything up that is to be known about one run. */
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
    executions: await store.executions(run.id, EXECUTIONS_MAX),
    now,
  }
}

/** What `show` answers. */
export function runReportView({
  run,
  assessed: { health },
  groups,
  needsAttention,
  executions,
  audit,
}: RunReport) {
  return {
    run: {
      ...runView(run),
      input: run.input,
      ...(isLive(run.status) && { health: health.state, because: health.because }),
    },
    counts: countsView(run.counts),
    groups: groups.map(({ group, counts }) => ({ group, ...countsView(counts) })),
    trouble: needsAttention.map(targetView),
    executions: executions.map(executionView),
    audit: audit.map(({ entry, key }) => ({ ...auditView(entry), key })),
  }
}

/** The same with what the run's page in the dashboard shows besides. */
export async function runDetail(context: AssessContext, run: Run) {
  const { store } = context
  const page = await loadRunReport(context, run)
  const isLiveRun = isLive(run.status)
  const samples: RecentSamples = isLiveRun ? await recentSamples(store, page.now) : new Map()
  const { owner, health } = page.assessed
  return {
    ...runReportView(page),
    run: {
      ...listedRunView(run, isLiveRun ? health : null, samples, page.now),
      input: run.input,
    },
    owner: isLiveRun && owner ? ownerView(owner) : null,
    commands: commandsFor(run),
  }
}

/** What one can type about it, as it is now. */
function commandsFor(run: Run): string[] {
  const { id, status, adopted, counts } = run
  const { failed, parked, stuck } = counts.targets
  const short = shortId(id)
  const isLiveRun = isLive(status)
  const canContinue = !isLiveRun && status !== 'succeeded'
  const canReopen = !adopted || adopted.can.includes('resume')
  return [
    unstuckCommand('show', [short]),
    unstuckCommand('explain', [short]),
    ...(isLiveRun && canCancel(run) ? [unstuckCommand('cancel', [short])] : []),
    ...(canContinue && canReopen ? [unstuckCommand('resume', [short])] : []),
    // No row is ever added to a table of the user's own.
    ...(canContinue && !adopted ? [unstuckCommand('retry', [short])] : []),
    ...(status === 'cancelled' || status === 'abandoned'
      ? [unstuckCommand('revert', [short])]
      : []),
    ...(failed > 0 && canReopen ? [unstuckCommand('reset-failed', [short])] : []),
    ...(parked + stuck > 0 && canReopen ? [unstuckCommand('unpark', [], { run: short })] : []),
  ]
}

/** Targets that wait for a person, some of each kind. */
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

/** The newest entries, oldest first. */
async function recentAudit(store: Store, run: Run): Promise<AuditEntryWithKey[]> {
  const last = await store.audit({ run: run.id, newestFirst: true, limit: AUDIT_MAX })
  return Promise.all(
    last.reverse().map(async (entry) => {
      const target = entry.target === null ? null : await store.target(entry.target)
      return { entry, key: target?.key ?? null }
    }),
  )
}
