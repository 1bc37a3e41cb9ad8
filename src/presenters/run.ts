import { auditSentence } from './history.ts'
import { worstSeverity } from '../core/decide/health.ts'
import { shortId } from '../core/model/id.ts'
import { isLive, type Counts, type Run } from '../core/model/run.ts'
import { describeOrigin, runName } from '../core/model/traits.ts'
import { type Target, TARGET_STATUSES } from '../core/model/target.ts'
import { type Millis, humanizeDuration, iso } from '../core/model/time.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { assessRun, type AssessContext, type AssessedRun } from '../core/recovery/assess.ts'
import { loadRevertFacts } from '../operator/actions.ts'
import type { AuditEntry, Store } from '../core/store/store.ts'
import {
  acknowledgedSentence,
  countAcknowledgedOf,
  countDeadLettersOf,
  loadAcknowledged,
  withoutAcknowledged,
} from './acknowledged.ts'
import { runActions, type AllowedAction } from './allowed-actions.ts'
import { describeFailures } from './attention.ts'
import {
  formatRunStatus,
  formatAgo,
  barOf,
  formatShareDone,
  howFar,
  formatDoneOfTotal,
  formatItems,
  plural,
  formatTargetStatus,
  sentenceCase,
  SEVERITY_STYLE,
  formatRunId,
  knownTime,
} from './format.ts'
import {
  continuationOf,
  describeContinuation,
  loadLastStart,
  type LastStart,
} from './continuation.ts'
import { executionsSection, executionView, loadExecutions } from './executions.ts'
import { loadFailureCause } from './failure-cause.ts'
import type { Presented } from './presented.ts'
import { recentSamples, type RecentSamples } from './pace.ts'
import { sourceItem } from './source-actions.ts'
import { describeNextStart, describeState, type SourceReport } from './sources.ts'
import { loadSource } from './find.ts'
import { listedRunView } from './runs.ts'
import { isStuck } from './stuck-rows.ts'
import { auditView, countsView, ownerView, targetView, runView } from './view.ts'
import {
  right,
  left,
  flex,
  type Cell,
  type Section,
  type Sentence,
  makeTable,
} from '../lib/text/sentence.ts'
import { groupsSection } from './progress.ts'

/** All that is reported about one run. */
export type RunReport = {
  readonly run: Run
  readonly assessed: AssessedRun
  readonly groups: readonly { readonly group: string | null; readonly counts: Counts }[]
  /** Some of its targets that need attention. */
  readonly needsAttention: readonly Target[]
  /** As in `status`: the run failed, or has targets that failed, are stuck or parked, and an operator has not acknowledged that. */
  readonly hasFailures: boolean
  /** How many of its targets an operator acknowledged. */
  readonly acknowledged: number
  /** Why it failed; null for any other run. */
  readonly cause: string | null
  /** Of its command, newest first; none for a crawl in TypeScript. */
  readonly executions: Awaited<ReturnType<typeof loadExecutions>>
  readonly audit: readonly AuditEntry[]
  readonly actions: readonly AllowedAction[]
  readonly samples: RecentSamples
  readonly source: SourceReport
  readonly lastStart: LastStart
  readonly now: Millis
}

const NEEDS_ATTENTION_MAX = 10
const ENTRIES_MAX = 10
/** Entries of the audit trail that decide whether `revert` is offered. */
const REVERT_AUDIT_MAX = 50

/** Reads all that is reported about one run. */
export async function loadRunReport(context: AssessContext, run: Run): Promise<RunReport> {
  const { store } = context
  const now = await store.now()
  const assessed = await assessRun(context, run)
  const acknowledged = await loadAcknowledged(store, [run])
  const open = withoutAcknowledged(run, acknowledged)
  const source = await loadSource(store, run.source)
  return {
    run,
    assessed,
    groups: await store.countsByGroup(run.id),
    needsAttention: open ? await targetsNeedingAttention(store, open) : [],
    hasFailures: open !== null && describeFailures(open) !== null,
    acknowledged: countAcknowledgedOf(run, acknowledged),
    cause: await loadFailureCause(store, run),
    audit: await recentAudit(store, run),
    actions: runActions({
      ...(await loadRevertFacts(store, run, REVERT_AUDIT_MAX)),
      isDead: false,
      isStuck: isStuck(assessed),
      acknowledged: countAcknowledgedOf(run, acknowledged),
    }),
    source,
    lastStart: await loadLastStart(context, run),
    executions: await loadExecutions(store, run, ENTRIES_MAX),
    samples: isLive(run.status) ? await recentSamples(store, now) : new Map(),
    now,
  }
}

type RunReportView = ReturnType<typeof runReportView>

/** `show`, the run's page in the dashboard, and the detail of `top`. */
export function presentRun(report: RunReport): Presented<RunReportView> {
  const { run, assessed, hasFailures } = report
  const { health } = assessed
  const isLiveRun = isLive(run.status)
  const severity = worstSeverity([
    ...(isLiveRun ? [health.severity] : []),
    ...(hasFailures ? ['attention' as const] : []),
  ])
  const { text } = formatRunStatus(run.status)
  const state = isLiveRun ? `${text}, ${health.state}` : text
  return {
    view: runReportView(report),
    severity,
    summary: `Run ${runName(run)} of ${run.source} is ${state}.`,
    sections: runSections(report),
    actions: report.actions,
  }
}

function runReportView(report: RunReport) {
  const { run, assessed, groups, needsAttention, cause, executions, audit, actions, samples, now } =
    report
  const { owner, health } = assessed
  const isLiveRun = isLive(run.status)
  return {
    run: {
      ...listedRunView(run, isLiveRun ? health : null, samples, now),
      input: run.input,
      results: run.traits.items,
    },
    counts: countsView(run.counts, run.traits),
    groups: groups.map(({ group, counts }) => ({ group, ...countsView(counts, run.traits) })),
    needsAttention: needsAttention.map(targetView),
    acknowledged: report.acknowledged,
    cause: cause && `${sentenceCase(cause)}.`,
    executions: executions.map(executionView),
    audit: audit.map(auditView),
    owner: isLiveRun && owner ? ownerView(owner) : null,
    continuation: isStopped(report)
      ? (continuationOf(run, report.lastStart)?.command ?? null)
      : null,
    source: sourceItem(report.source),
    commands: ['show', 'explain']
      .map((verb) => unstuckCommand(verb, [runName(run)]))
      .concat(actions.map(({ command }) => command)),
  }
}

/** Returns targets that need attention, some of each kind. `run`: without those that are acknowledged. */
async function targetsNeedingAttention(store: Store, run: Run): Promise<Target[]> {
  const found: Target[] = []
  for (const status of ['stuck', 'parked', 'failed'] as const) {
    if (run.counts.targets[status] === 0) continue
    const filter = { statuses: [status], acknowledged: false, limit: NEEDS_ATTENTION_MAX }
    found.push(...(await store.targets(run.id, filter)).items)
  }
  return found
}

/** Returns the newest entries, oldest first. */
async function recentAudit(store: Store, run: Run): Promise<AuditEntry[]> {
  const last = await store.audit({ run: run.id, newestFirst: true, limit: ENTRIES_MAX })
  if (run.traits.origin === null) return last.reverse()
  // The key of a row is in its own table.
  return Promise.all(
    last.reverse().map(async (entry) => {
      const target = entry.target === null ? null : await store.target(entry.target)
      return { ...entry, key: target?.key ?? null }
    }),
  )
}

const GROUPS_MAX = 10

/** The text of a run: its health, facts, targets, groups, what needs attention, its command and its history. */
export function runSections(report: RunReport): Section[] {
  const { run, groups, needsAttention, audit, executions } = report
  const isSplit = groups.some(({ group }) => group !== null)
  return [
    headline(report),
    { heading: null, sentences: [...facts(report), ...acknowledgedSentences(report)] },
    ...(run.kind === 'crawl' ? [targetCounts(report)] : []),
    ...(isSplit ? [groupsSection('Groups', report, GROUPS_MAX)] : []),
    ...(needsAttention.length > 0 && run.traits.hasTargets ? [attention(report)] : []),
    ...(executions.length > 0 ? [executionsSection(report)] : []),
    ...(audit.length > 0 ? [auditSection(report)] : []),
  ]
}

function headline(report: RunReport): Section {
  const { run, assessed, cause } = report
  const { health } = assessed
  const title: Sentence = [
    { text: `Run ${runName(run)}`, style: 'strong' },
    ' of ',
    { text: run.source, style: 'strong' },
    ': ',
    formatRunStatus(run.status),
  ]
  if (!isLive(run.status)) {
    const why: Sentence[] =
      cause === null ? [] : [[{ text: `${sentenceCase(cause)}.`, style: 'bad' }]]
    return { heading: null, sentences: [title, ...why] }
  }
  const text = `${sentenceCase(health.state)}: ${health.because}.`
  const style = health.severity === 'ok' ? 'dim' : SEVERITY_STYLE[health.severity]
  return { heading: null, sentences: [title, [{ text, style }], ...howToContinue(report)] }
}

function howToContinue(report: RunReport): Sentence[] {
  const { run } = report
  if (report.assessed.health.state === 'paused')
    return [[`It goes on after \`${unstuckCommand('unpause', [run.source])}\`.`]]
  const start = describeNextStart(run, report.source.state, report.now)
  if (start === null && !isStopped(report)) return []
  return [[start ?? describeContinuation(run, report.lastStart)]]
}

/** Returns whether the run stopped half-way, and starting its program continues it. */
function isStopped({ run, assessed, source, now }: RunReport): boolean {
  const { state } = assessed.health
  const isOwn = run.traits.continuedBy === 'own-program'
  if (state === 'paused' || (state === 'dead' && !isOwn)) return false
  if (describeNextStart(run, source.state, now) !== null) return false
  if (run.status === 'interrupted') return true
  // Recovery ends what its lost workers held.
  const isEnded = ['fail', 'hold', 'park'].includes(assessed.decision.action)
  return run.status === 'running' && state === 'orphaned' && !isOwn && !isEnded
}

function facts({ run, assessed, source, now }: RunReport): Sentence[] {
  const { attempt } = runView(run)
  const far = howFar(run)
  const { counts, traits } = run
  const { origin, hasTargets } = traits
  const at = (moment: Millis | null): string =>
    moment === null
      ? '–'
      : `${formatAgo(moment, now)} (${iso(moment).slice(0, 19).replace('T', ' ')} UTC)`
  const unit = run.kind === 'crawl' ? 'targets' : 'done'
  const found: [string, Cell | null][] = [
    ['id', run.id],
    ['row', origin ? describeOrigin(origin) : null],
    ['progress', `${barOf(far)} ${formatDoneOfTotal(far)} ${unit}, ${formatShareDone(far)}`],
    ['pages', hasTargets ? String(countsView(counts, run.traits).pages ?? '–') : null],
    ['items', formatItems(run)],
    ['created', at(knownTime(run, run.createdAt))],
    [
      'started',
      run.startedAt === null
        ? null
        : `${at(run.startedAt)}${attempt > 1 ? `, attempt ${attempt}` : ''}`,
    ],
    run.finishedAt === null
      ? ['last activity', at(knownTime(run, run.lastActivityAt))]
      : ['finished', at(run.finishedAt)],
    ['took', durationOf(run)],
    ['owner', run.owner && (assessed.owner?.evidence.label ?? `worker ${shortId(run.owner)}`)],
    ['source', isLive(run.status) && run.paused ? null : describeState(source.state, now)],
    ['retry of', run.retryOf && shortId(run.retryOf)],
    [
      'refused',
      counts.refused > 0
        ? `${plural(counts.refused, 'late write')}, of claims that had moved on`
        : null,
    ],
    ['error', run.error === null ? null : { text: run.error, style: 'bad' }],
  ]
  const shown = found.filter((fact): fact is [string, Cell] => fact[1] !== null)
  const width = Math.max(...shown.map(([name]) => name.length)) + 2
  return shown.map(([name, value]) => [{ text: name.padEnd(width), style: 'dim' }, value])
}

function acknowledgedSentences({ run, acknowledged, now }: RunReport): Sentence[] {
  if (run.acknowledgedAt !== null) return [[acknowledgedSentence(run.acknowledgedAt, now)]]
  if (acknowledged === 0) return []
  return [[`${plural(acknowledged, 'target')} acknowledged: not counted as needing attention.`]]
}

function durationOf({ startedAt, finishedAt }: Run): string | null {
  return startedAt === null || finishedAt === null ? null : humanizeDuration(finishedAt - startedAt)
}

function targetCounts({ run, assessed }: RunReport): Section {
  const { targets } = run.counts
  const areAllLost = run.traits.origin === null && assessed.health.state === 'orphaned'
  const parts = TARGET_STATUSES.filter((status) => targets[status] > 0).flatMap(
    (status, i): Cell[] => {
      const { text, style } = formatTargetStatus(status)
      const more = areAllLost && status === 'in_progress' ? ' (held by lost workers)' : ''
      return [...(i > 0 ? [', '] : []), { text: `${targets[status]} ${text}${more}`, style }]
    },
  )
  return { heading: 'Targets', sentences: [parts.length > 0 ? parts : ['none yet']] }
}

function attention({ run, needsAttention, acknowledged }: RunReport): Section {
  const all = countDeadLettersOf(run) - acknowledged
  const shown = all > needsAttention.length ? ` (${needsAttention.length} of ${all})` : ''
  return {
    heading: `Needs attention${shown}`,
    table: makeTable(needsAttention, [
      left('TARGET', ({ id, origin }) => formatRunId(id, origin), 2),
      left('STATUS', ({ status }) => formatTargetStatus(status)),
      right('PAGE', ({ page }) => String(page), 3),
      right('TRIES', ({ attempts }) => String(attempts), 4),
      flex('KEY', ({ key }) => key),
      flex('LAST ERROR', ({ lastError }) => lastError?.split('\n', 1)[0] ?? '–'),
    ]),
    sentences: [],
  }
}

function auditSection({ run, audit, now }: RunReport): Section {
  return {
    heading: 'History',
    sentences: audit.map((entry) => {
      const isRun = entry.target === null || !run.traits.hasTargets
      return auditSentence(entry, now, isRun ? 'the run' : (entry.key ?? shortId(entry.target)))
    }),
  }
}
