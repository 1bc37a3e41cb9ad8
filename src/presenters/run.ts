import { worstSeverity } from '../core/decide/health.ts'
import { COMMAND_STORE, type Execution } from '../features/commands/store/store.ts'
import { shortId } from '../core/model/id.ts'
import { isLive, type Counts, type Run } from '../core/model/run.ts'
import { describeOrigin } from '../core/model/traits.ts'
import { type Target, TARGET_STATUSES } from '../core/model/target.ts'
import { type Millis, humanizeDuration, iso } from '../core/model/time.ts'
import { unstuckCommand, runCommand } from '../lib/text/shell-command.ts'
import { assessRun, type AssessContext, type AssessedRun } from '../core/recovery/assess.ts'
import { loadRevertFacts } from '../core/recovery/operator-actions.ts'
import type { AuditEntry, Store } from '../core/store/store.ts'
import { runActions, type AllowedAction } from './allowed-actions.ts'
import {
  formatRunStatus,
  formatAgo,
  progressBar,
  formatDoneOfTotal,
  percent,
  plural,
  formatTargetStatus,
  SEVERITY_STYLE,
} from './format.ts'
import type { Presented } from './presented.ts'
import { recentSamples, type RecentSamples } from './pace.ts'
import { listedRunView } from './runs.ts'
import { auditView, countsView, executionView, ownerView, targetView, runView } from './view.ts'
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
    run: {
      ...listedRunView(run, isLiveRun ? health : null, samples, now),
      input: run.input,
      results: run.traits.items,
    },
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

const GROUPS_MAX = 10

/** The text of a run: its health, facts, targets, groups, what needs attention, its command and its history. */
export function runSections(report: RunReport): Section[] {
  const { run, groups, needsAttention, audit, executions } = report
  const isSplit = groups.some(({ group }) => group !== null)
  return [
    headline(report),
    { heading: null, sentences: facts(report) },
    ...(run.kind === 'crawl' ? [targetCounts(report)] : []),
    ...(isSplit ? [groupsSection('Groups', groups, GROUPS_MAX)] : []),
    ...(needsAttention.length > 0 && run.traits.hasTargets ? [attention(report)] : []),
    ...(executions.length > 0 ? [executionsSection(report)] : []),
    ...(audit.length > 0 ? [auditSection(report)] : []),
  ]
}

function headline(report: RunReport): Section {
  const { run, assessed } = report
  const { health } = assessed
  const title: Sentence = [
    { text: `Run ${shortId(run.id)}`, style: 'strong' },
    ' of ',
    { text: run.source, style: 'strong' },
    ': ',
    formatRunStatus(run.status),
  ]
  if (!isLive(run.status)) return { heading: null, sentences: [title] }
  const text = `${health.state.charAt(0).toUpperCase()}${health.state.slice(1)}: ${health.because}.`
  const style = health.severity === 'ok' ? 'dim' : SEVERITY_STYLE[health.severity]
  return { heading: null, sentences: [title, [{ text, style }], ...howToContinue(report)] }
}

function howToContinue({ run, assessed, executions }: RunReport): Sentence[] {
  if (run.traits.continuedBy === 'own-program')
    return run.status === 'interrupted' ? [['It continues when your own program takes it up.']] : []
  const { state } = assessed.health
  if (state === 'dead' || (state !== 'orphaned' && run.status !== 'interrupted')) return []
  const [last] = executions
  const start = last
    ? `Start it again (\`${runCommand(run.source, last.command)}\`)`
    : 'Start its worker again (`unstuck work MODULE`)'
  return [[`${start}: it continues after the last saved page.`]]
}

function facts({ run, assessed, now }: RunReport): Sentence[] {
  const { done, total, skipped, attempt } = runView(run)
  const { counts } = run
  const { origin, hasTargets } = run.traits
  const at = (moment: Millis): string =>
    `${formatAgo(moment, now)} (${iso(moment).slice(0, 19).replace('T', ' ')} UTC)`
  const unit = run.kind === 'crawl' ? 'targets' : 'done'
  const found: [string, Cell | null][] = [
    ['id', run.id],
    ['row', origin ? describeOrigin(origin) : null],
    [
      'progress',
      `${progressBar(done, total)} ${formatDoneOfTotal(run)} ${unit}, ${percent(done, total)}`,
    ],
    ['pages', hasTargets ? String(counts.pages) : null],
    ['items', `${counts.itemsNew} new, ${counts.itemsUpdated} updated, ${skipped} skipped`],
    ['created', at(run.createdAt)],
    [
      'started',
      run.startedAt === null
        ? null
        : `${at(run.startedAt)}${attempt > 1 ? `, attempt ${attempt}` : ''}`,
    ],
    run.finishedAt === null
      ? ['last activity', at(run.lastActivityAt)]
      : ['finished', at(run.finishedAt)],
    ['took', durationOf(run)],
    ['owner', run.owner && (assessed.owner?.evidence.label ?? `worker ${shortId(run.owner)}`)],
    ['retry of', run.retryOf && shortId(run.retryOf)],
    [
      'refused',
      counts.refused > 0
        ? `${plural(counts.refused, 'late write')}, of claims that had moved on`
        : null,
    ],
    ['error', run.error === null ? null : { text: run.error, style: 'bad' }],
  ]
  return found.flatMap(([name, value]): Sentence[] =>
    value === null ? [] : [[{ text: name.padEnd(10), style: 'dim' }, value]],
  )
}

function durationOf({ startedAt, finishedAt }: Run): string | null {
  return startedAt === null || finishedAt === null ? null : humanizeDuration(finishedAt - startedAt)
}

function targetCounts({ run }: RunReport): Section {
  const { targets } = run.counts
  const parts = TARGET_STATUSES.filter((status) => targets[status] > 0).flatMap(
    (status, i): Cell[] => {
      const { text, style } = formatTargetStatus(status)
      return [...(i > 0 ? [', '] : []), { text: `${targets[status]} ${text}`, style }]
    },
  )
  return { heading: 'Targets', sentences: [parts.length > 0 ? parts : ['none yet']] }
}

function attention({ run, needsAttention }: RunReport): Section {
  const { failed, parked, stuck } = run.counts.targets
  const all = failed + parked + stuck
  const shown = all > needsAttention.length ? ` (${needsAttention.length} of ${all})` : ''
  return {
    heading: `Needs attention${shown}`,
    table: makeTable(needsAttention, [
      left('TARGET', ({ id }) => shortId(id), 2),
      left('STATUS', ({ status }) => formatTargetStatus(status)),
      right('PAGE', ({ page }) => String(page), 3),
      right('TRIES', ({ attempts }) => String(attempts), 4),
      flex('KEY', ({ key }) => key),
      flex('LAST ERROR', ({ lastError }) => lastError?.split('\n', 1)[0] ?? '–'),
    ]),
    sentences: [],
  }
}

/** The executions of its command, oldest first. */
function executionsSection({ run, executions, now }: RunReport): Section {
  const all = executions.toReversed().map(({ startedAt, end, command }, n): Sentence => {
    const isRunning = n === executions.length - 1 && run.status === 'running'
    const files = end && end.artifacts > 0 ? `, ${plural(end.artifacts, 'file')}` : ''
    const took = end
      ? `${end.because}, after ${humanizeDuration(end.at - startedAt)}${files}`
      : isRunning
        ? 'running'
        : 'its end was not observed'
    const memory = end?.peakMemory ? `, ${Math.round(end.peakMemory / 1_048_576)} MB at most` : ''
    return [
      { text: formatAgo(startedAt, now), style: 'dim' },
      `  ${command.join(' ')}: ${took}${memory}`,
    ]
  })
  const [last] = executions
  return {
    heading: 'Command',
    sentences: [
      ...all,
      [{ text: `Files: ${last!.outputDir} on ${last!.host}`, style: 'dim' }],
      [{ text: `Output: \`unstuck logs ${shortId(run.id)}\``, style: 'dim' }],
    ],
  }
}

function auditSection({ run, audit, now }: RunReport): Section {
  return {
    heading: 'History',
    sentences: audit.map(({ entry, key }): Sentence => {
      const what =
        entry.target === null || !run.traits.hasTargets
          ? 'the run'
          : (key ?? `target ${shortId(entry.target)}`)
      return [
        { text: formatAgo(entry.at, now), style: 'dim' },
        `  ${entry.action} ${what}, by ${entry.actor}: ${entry.because}.`,
      ]
    }),
  }
}
