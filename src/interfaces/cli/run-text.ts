import { shortId } from '../../core/model/id.ts'
import { isLive, isAdoptedRow, describeRow, type Run } from '../../core/model/run.ts'
import { TARGET_STATUSES } from '../../core/model/target.ts'
import { humanizeDuration, iso, type Millis } from '../../core/model/time.ts'
import { runCommand } from '../../core/model/shell-command.ts'
import type { RunReport } from '../../presenters/run.ts'
import { runView } from '../../presenters/view.ts'
import { printGroups } from './groups-text.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import type { Cell } from '../../lib/text/sentence.ts'
import {
  formatAgo,
  progressBar,
  formatDoneOfTotal,
  percent,
  plural,
  formatRunStatus,
  formatTargetStatus,
  SEVERITY_STYLE,
} from '../../presenters/format.ts'

const GROUPS_MAX = 10

export function printRun(writer: TextWriter, page: RunReport): void {
  const { run, groups, needsAttention, audit } = page
  const { health } = page.assessed
  writer.line(
    { text: `Run ${shortId(run.id)}`, style: 'strong' },
    ' of ',
    { text: run.source, style: 'strong' },
    ': ',
    formatRunStatus(run.status),
  )
  if (isLive(run.status)) {
    writer.paragraph({
      text: `${capitalize(health.state)}: ${health.because}.`,
      style: health.severity === 'ok' ? 'dim' : SEVERITY_STYLE[health.severity],
    })
  }
  if (run.adopted) {
    if (run.status === 'interrupted')
      writer.paragraph('It waits for your own program to take it up.')
  } else if (isLive(run.status) && (health.state === 'orphaned' || run.status === 'interrupted')) {
    const [last] = page.executions
    const start = last
      ? `Start it again (\`${runCommand(run.source, last.command)}\`)`
      : 'Start its worker again (`unstuck work MODULE`)'
    writer.paragraph(`${start}: it goes on after the last saved page.`)
  }
  writer.blank()
  printFacts(writer, page)
  if (run.kind === 'crawl') printCounts(writer, run)
  if (groups.some(({ group }) => group !== null)) {
    writer.heading('Groups')
    printGroups(writer, groups, GROUPS_MAX)
  }
  if (needsAttention.length > 0 && !isAdoptedRow(run)) printNeedsAttention(writer, page)
  if (page.executions.length > 0) printExecutions(writer, page)
  if (audit.length > 0) printAudit(writer, page)
}

function printFacts(writer: TextWriter, { run, assessed, now }: RunReport): void {
  const { done, total, skipped, attempt } = runView(run)
  const { counts } = run
  const at = (moment: Millis): string =>
    `${formatAgo(moment, now)} (${iso(moment).slice(0, 19).replace('T', ' ')} UTC)`
  const facts: [string, Cell][] = [
    ['id', run.id],
    ...(run.adopted ? [['row', describeRow(run.adopted)] as [string, Cell]] : []),
    [
      'progress',
      `${progressBar(done, total)} ${formatDoneOfTotal(run)} ${run.kind === 'crawl' ? 'targets' : 'done'}, ${percent(done, total)}`,
    ],
    ...(isAdoptedRow(run) ? [] : [['pages', `${counts.pages}`] as [string, Cell]]),
    ['items', `${counts.itemsNew} new, ${counts.itemsUpdated} updated, ${skipped} skipped`],
    ['created', at(run.createdAt)],
  ]
  if (run.startedAt !== null)
    facts.push(['started', `${at(run.startedAt)}${attempt > 1 ? `, attempt ${attempt}` : ''}`])
  if (run.finishedAt !== null) facts.push(['finished', at(run.finishedAt)])
  else facts.push(['last sign', at(run.lastActivityAt)])
  if (run.finishedAt !== null && run.startedAt !== null)
    facts.push(['took', humanizeDuration(run.finishedAt - run.startedAt)])
  if (run.owner !== null)
    facts.push(['owner', assessed.owner?.evidence.label ?? `worker ${shortId(run.owner)}`])
  if (run.retryOf !== null) facts.push(['retry of', shortId(run.retryOf)])
  if (counts.refused > 0)
    facts.push(['refused', `${plural(counts.refused, 'late write')}, of claims that had moved on`])
  if (run.error !== null) facts.push(['error', { text: run.error, style: 'bad' }])
  for (const [name, value] of facts) writer.line({ text: name.padEnd(10), style: 'dim' }, value)
}

function printCounts(writer: TextWriter, { counts }: Run): void {
  writer.heading('Targets')
  const parts = TARGET_STATUSES.filter((status) => counts.targets[status] > 0).flatMap(
    (status, i): Cell[] => {
      const { text, style } = formatTargetStatus(status)
      return [...(i > 0 ? [', '] : []), { text: `${counts.targets[status]} ${text}`, style }]
    },
  )
  writer.paragraph(...(parts.length > 0 ? parts : ['none yet']))
}

function printNeedsAttention(writer: TextWriter, { run, needsAttention }: RunReport): void {
  const { failed, parked, stuck } = run.counts.targets
  const all = failed + parked + stuck
  writer.heading(
    `Needs attention${all > needsAttention.length ? ` (${needsAttention.length} of ${all})` : ''}`,
  )
  writer.table(
    [
      { header: 'TARGET', optional: 2 },
      { header: 'STATUS' },
      { header: 'PAGE', align: 'right', optional: 3 },
      { header: 'TRIES', align: 'right', optional: 4 },
      { header: 'KEY', flex: true },
      { header: 'LAST ERROR', flex: true },
    ],
    needsAttention.map((target) => [
      shortId(target.id),
      formatTargetStatus(target.status),
      String(target.page),
      String(target.attempts),
      target.key,
      target.lastError?.split('\n', 1)[0] ?? '–',
    ]),
  )
}

/** Oldest first, as they came. */
function printExecutions(writer: TextWriter, { run, executions, now }: RunReport): void {
  const isHeld = run.status === 'running'
  writer.heading('Its command')
  executions.toReversed().forEach(({ startedAt, end, command }, n, all) => {
    const isLast = n === all.length - 1
    const unseen = isLast && isHeld ? 'at work' : 'nobody saw its end'
    const files = end && end.artifacts > 0 ? `, ${plural(end.artifacts, 'file')}` : ''
    const took = end
      ? `${end.because}, after ${humanizeDuration(end.at - startedAt)}${files}`
      : unseen
    const memory = end?.peakMemory ? `, ${Math.round(end.peakMemory / 1_048_576)} MB at most` : ''
    writer.paragraph(
      { text: formatAgo(startedAt, now), style: 'dim' },
      `  ${command.join(' ')}: ${took}${memory}`,
    )
  })
  const [last] = executions
  writer.paragraph({ text: `Its files: ${last!.outputDir} on ${last!.host}`, style: 'dim' })
  writer.paragraph({ text: `Its output: \`unstuck logs ${shortId(run.id)}\``, style: 'dim' })
}

function printAudit(writer: TextWriter, { run, audit, now }: RunReport): void {
  writer.heading('What was done about it')
  for (const { entry, key } of audit) {
    const what =
      entry.target === null || isAdoptedRow(run)
        ? 'the run'
        : (key ?? `target ${shortId(entry.target)}`)
    writer.paragraph(
      { text: formatAgo(entry.at, now), style: 'dim' },
      `  ${entry.action} ${what}, by ${entry.actor}: ${entry.because}.`,
    )
  }
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
