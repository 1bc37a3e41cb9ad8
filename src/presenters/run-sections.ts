import { shortId } from '../core/model/id.ts'
import { isLive, isAdoptedRow, describeRow, type Run } from '../core/model/run.ts'
import { TARGET_STATUSES } from '../core/model/target.ts'
import { humanizeDuration, iso, type Millis } from '../core/model/time.ts'
import { runCommand } from '../lib/text/shell-command.ts'
import type { Cell, Section, Sentence } from '../lib/text/sentence.ts'
import {
  formatAgo,
  progressBar,
  formatDoneOfTotal,
  percent,
  plural,
  formatRunStatus,
  formatTargetStatus,
  SEVERITY_STYLE,
} from './format.ts'
import { groupsSection } from './progress.ts'
import type { RunReport } from './run.ts'
import { runView } from './view.ts'

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
    ...(needsAttention.length > 0 && !isAdoptedRow(run) ? [attention(report)] : []),
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
  if (run.adopted)
    return run.status === 'interrupted' ? [['It continues when your own program takes it up.']] : []
  if (assessed.health.state !== 'orphaned' && run.status !== 'interrupted') return []
  const [last] = executions
  const start = last
    ? `Start it again (\`${runCommand(run.source, last.command)}\`)`
    : 'Start its worker again (`unstuck work MODULE`)'
  return [[`${start}: it continues after the last saved page.`]]
}

function facts({ run, assessed, now }: RunReport): Sentence[] {
  const { done, total, skipped, attempt } = runView(run)
  const { counts } = run
  const at = (moment: Millis): string =>
    `${formatAgo(moment, now)} (${iso(moment).slice(0, 19).replace('T', ' ')} UTC)`
  const unit = run.kind === 'crawl' ? 'targets' : 'done'
  const found: [string, Cell | null][] = [
    ['id', run.id],
    ['row', run.adopted ? describeRow(run.adopted) : null],
    [
      'progress',
      `${progressBar(done, total)} ${formatDoneOfTotal(run)} ${unit}, ${percent(done, total)}`,
    ],
    ['pages', isAdoptedRow(run) ? null : String(counts.pages)],
    ['items', `${counts.itemsNew} new, ${counts.itemsUpdated} updated, ${skipped} skipped`],
    ['created', at(run.createdAt)],
    [
      'started',
      run.startedAt === null
        ? null
        : `${at(run.startedAt)}${attempt > 1 ? `, attempt ${attempt}` : ''}`,
    ],
    run.finishedAt === null
      ? ['last sign', at(run.lastActivityAt)]
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
    table: {
      columns: [
        { header: 'TARGET', optional: 2 },
        { header: 'STATUS' },
        { header: 'PAGE', align: 'right', optional: 3 },
        { header: 'TRIES', align: 'right', optional: 4 },
        { header: 'KEY', flex: true },
        { header: 'LAST ERROR', flex: true },
      ],
      rows: needsAttention.map((target) => [
        shortId(target.id),
        formatTargetStatus(target.status),
        String(target.page),
        String(target.attempts),
        target.key,
        target.lastError?.split('\n', 1)[0] ?? '–',
      ]),
    },
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
        entry.target === null || isAdoptedRow(run)
          ? 'the run'
          : (key ?? `target ${shortId(entry.target)}`)
      return [
        { text: formatAgo(entry.at, now), style: 'dim' },
        `  ${entry.action} ${what}, by ${entry.actor}: ${entry.because}.`,
      ]
    }),
  }
}
