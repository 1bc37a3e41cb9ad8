import { shortId } from '../../core/model/id.ts'
import { isLive, isRow, sayRow, type Run } from '../../core/model/run.ts'
import { TARGET_STATUSES } from '../../core/model/target.ts'
import { inWords, iso, type Millis } from '../../core/model/time.ts'
import { runCommand } from '../../core/model/shell-command.ts'
import type { RunPage } from '../../presenters/run.ts'
import { runView } from '../../presenters/view.ts'
import { printGroups } from './groups-text.ts'
import { isStuck } from '../../presenters/health.ts'
import type { Cell, Paper } from '../../lib/terminal/text-writer.ts'
import {
  ago,
  bar,
  doneOfTotal,
  percent,
  plural,
  runStatus,
  targetStatus,
} from '../../presenters/format.ts'

const GROUPS_MAX = 10

export function printRun(paper: Paper, page: RunPage): void {
  const { run, health, groups, trouble, audit } = page
  paper.line(
    { text: `Run ${shortId(run.id)}`, ink: 'strong' },
    ' of ',
    { text: run.source, ink: 'strong' },
    ': ',
    runStatus(run.status),
  )
  if (isLive(run.status)) {
    paper.say({
      text: `${capital(health.state)}: ${health.because}.`,
      ink: isStuck(health) ? 'bad' : 'dim',
    })
  }
  if (run.adopted) {
    if (run.status === 'interrupted') paper.say('It waits for your own program to take it up.')
  } else if (isLive(run.status) && (health.state === 'orphaned' || run.status === 'interrupted')) {
    const [last] = page.executions
    const start = last
      ? `Start it again (\`${runCommand(run.source, last.command)}\`)`
      : 'Start its worker again (`unstuck work MODULE`)'
    paper.say(`${start}: it goes on after the last saved page.`)
  }
  paper.blank()
  printFacts(paper, page)
  if (run.kind === 'crawl') printCounts(paper, run)
  if (groups.some(({ group }) => group !== null)) {
    paper.heading('Groups')
    printGroups(paper, groups, GROUPS_MAX)
  }
  if (trouble.length > 0 && !isRow(run)) printTrouble(paper, page)
  if (page.executions.length > 0) printExecutions(paper, page)
  if (audit.length > 0) printAudit(paper, page)
}

function printFacts(paper: Paper, { run, judged, now }: RunPage): void {
  const { done, total, skipped, attempt } = runView(run)
  const { counts } = run
  const at = (moment: Millis): string =>
    `${ago(moment, now)} (${iso(moment).slice(0, 19).replace('T', ' ')} UTC)`
  const facts: [string, Cell][] = [
    ['id', run.id],
    ...(run.adopted ? [['row', sayRow(run.adopted)] as [string, Cell]] : []),
    [
      'progress',
      `${bar(done, total)} ${doneOfTotal(run)} ${run.kind === 'crawl' ? 'targets' : 'done'}, ${percent(done, total)}`,
    ],
    ...(isRow(run) ? [] : [['pages', `${counts.pages}`] as [string, Cell]]),
    ['items', `${counts.itemsNew} new, ${counts.itemsUpdated} updated, ${skipped} skipped`],
    ['created', at(run.createdAt)],
  ]
  if (run.startedAt !== null)
    facts.push(['started', `${at(run.startedAt)}${attempt > 1 ? `, attempt ${attempt}` : ''}`])
  if (run.finishedAt !== null) facts.push(['finished', at(run.finishedAt)])
  else facts.push(['last sign', at(run.lastActivityAt)])
  if (run.finishedAt !== null && run.startedAt !== null)
    facts.push(['took', inWords(run.finishedAt - run.startedAt)])
  if (run.owner !== null)
    facts.push(['owner', judged.owner?.evidence.who ?? `worker ${shortId(run.owner)}`])
  if (run.retryOf !== null) facts.push(['retry of', shortId(run.retryOf)])
  if (counts.refused > 0)
    facts.push(['refused', `${plural(counts.refused, 'late write')}, of claims that had moved on`])
  if (run.error !== null) facts.push(['error', { text: run.error, ink: 'bad' }])
  for (const [name, value] of facts) paper.line({ text: name.padEnd(10), ink: 'dim' }, value)
}

function printCounts(paper: Paper, { counts }: Run): void {
  paper.heading('Targets')
  const parts = TARGET_STATUSES.filter((status) => counts.targets[status] > 0).flatMap(
    (status, i): Cell[] => {
      const { text, ink } = targetStatus(status)
      return [...(i > 0 ? [', '] : []), { text: `${counts.targets[status]} ${text}`, ink }]
    },
  )
  paper.say(...(parts.length > 0 ? parts : ['none yet']))
}

function printTrouble(paper: Paper, { run, trouble }: RunPage): void {
  const { failed, parked, stuck } = run.counts.targets
  const all = failed + parked + stuck
  paper.heading(`Left for a person${all > trouble.length ? ` (${trouble.length} of ${all})` : ''}`)
  paper.table(
    [
      { head: 'TARGET', optional: 2 },
      { head: 'STATUS' },
      { head: 'PAGE', align: 'right', optional: 3 },
      { head: 'TRIES', align: 'right', optional: 4 },
      { head: 'KEY', flex: true },
      { head: 'LAST ERROR', flex: true },
    ],
    trouble.map((target) => [
      shortId(target.id),
      targetStatus(target.status),
      String(target.page),
      String(target.attempts),
      target.key,
      target.lastError?.split('\n', 1)[0] ?? '–',
    ]),
  )
}

/** Oldest first, as they came. */
function printExecutions(paper: Paper, { run, executions, now }: RunPage): void {
  const isHeld = run.status === 'running'
  paper.heading('Its command')
  executions.toReversed().forEach(({ startedAt, end, command }, n, all) => {
    const isLast = n === all.length - 1
    const unseen = isLast && isHeld ? 'at work' : 'nobody saw its end'
    const files = end && end.artifacts > 0 ? `, ${plural(end.artifacts, 'file')}` : ''
    const took = end ? `${end.because}, after ${inWords(end.at - startedAt)}${files}` : unseen
    const memory = end?.peakMemory ? `, ${Math.round(end.peakMemory / 1_048_576)} MB at most` : ''
    paper.say({ text: ago(startedAt, now), ink: 'dim' }, `  ${command.join(' ')}: ${took}${memory}`)
  })
  const [last] = executions
  paper.say({ text: `Its files: ${last!.outputDir} on ${last!.host}`, ink: 'dim' })
  paper.say({ text: `Its output: \`unstuck logs ${shortId(run.id)}\``, ink: 'dim' })
}

function printAudit(paper: Paper, { run, audit, now }: RunPage): void {
  paper.heading('What was done about it')
  for (const { entry, key } of audit) {
    const what =
      entry.target === null || isRow(run) ? 'the run' : (key ?? `target ${shortId(entry.target)}`)
    paper.say(
      { text: ago(entry.at, now), ink: 'dim' },
      `  ${entry.action} ${what}, by ${entry.actor}: ${entry.because}.`,
    )
  }
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
