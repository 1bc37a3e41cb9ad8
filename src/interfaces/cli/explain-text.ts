import { shortId } from '../../core/model/id.ts'
import { isLive, isAdoptedRow, describeRow } from '../../core/model/run.ts'
import { humanizeDuration } from '../../core/model/time.ts'
import type { Explanation } from '../../presenters/explanation.ts'
import type { PolicySetting } from '../../presenters/policy-origin.ts'
import { runView } from '../../presenters/view.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import {
  formatAgo,
  formatDoneOfTotal,
  plural,
  formatRunStatus,
  formatTargetStatus,
} from '../../presenters/format.ts'
import { printSettings } from './policy-text.ts'
import { printAuditEntry } from './history-text.ts'

/** The settings that the verdict hangs on, and the name of the preset that some of them come from. */
export type PolicyContext = {
  readonly policy: readonly PolicySetting[]
  readonly preset: string | null
}

/** For a tired person: what it is, what is known, what that means, and what would change it. */
export function printExplanation(
  writer: TextWriter,
  explanation: Explanation,
  { policy, preset }: PolicyContext,
): void {
  const { run, target, decision, outlook, trail, now } = explanation
  if (target) printTarget(writer, explanation)
  else printRun(writer, explanation)

  writer.heading('What is known')
  printEvidence(writer, explanation)

  writer.heading('Verdict')
  writer.paragraph({ text: decision.action, style: 'strong' }, `: ${decision.because}.`)

  if (outlook.changes.length > 0) writer.heading('What would change it')
  for (const change of outlook.changes) writer.paragraph(`- ${change}`)

  if (policy.length > 0) {
    writer.heading('By this policy')
    printSettings(writer, policy, preset)
  }
  if (trail.length > 0) writer.heading('What was done so far, newest first')
  for (const entry of trail) {
    const isOther = !target && entry.target !== null && !isAdoptedRow(run)
    printAuditEntry(writer, entry, now, isOther ? `target ${shortId(entry.target)}` : '')
  }
}

function printRun(writer: TextWriter, { run, now }: Explanation): void {
  const { extracted, skipped } = runView(run)
  const { text, style } = formatRunStatus(run.status)
  writer.paragraph(
    `Run ${shortId(run.id)} of `,
    { text: run.source, style: 'strong' },
    ': ',
    { text, style },
    '.',
  )
  if (run.adopted) writer.paragraph(`It is ${describeRow(run.adopted)}.`)
  const pages = isAdoptedRow(run) ? '' : ` ${plural(run.counts.pages, 'page')} saved,`
  writer.paragraph(
    `It is ${humanizeDuration(now - run.createdAt)} old: ${formatDoneOfTotal(run)} done,${pages} ` +
      `${plural(extracted, 'item')} extracted, ${skipped} skipped.`,
  )
  if (isAdoptedRow(run) && run.artifacts > 0)
    writer.paragraph('There is a checkpoint or a file of its output: something to go on from.')
  if (run.error !== null) writer.paragraph({ text: `Error: ${run.error}`, style: 'bad' })
  if (run.retryOf !== null)
    writer.paragraph(`It follows run ${shortId(run.retryOf)} and began from nothing.`)
}

function printTarget(writer: TextWriter, { run, target }: Explanation): void {
  const { id, key, group, status, page, pageTarget, attempts, crashes, lastError } = target!
  const of = pageTarget === null ? '' : ` of ${pageTarget}`
  const { text, style } = formatRunStatus(run.status)
  writer.paragraph(
    `Target ${shortId(id)}, `,
    { text: key, style: 'strong' },
    group === null ? ': ' : `, of group ${group}: `,
    formatTargetStatus(status),
    '.',
  )
  writer.paragraph(`It is part of run ${shortId(run.id)} of ${run.source}: `, { text, style }, '.')
  writer.paragraph(
    `${page === 0 ? 'No page is saved' : `Page ${page}${of} is its last saved one`}; ` +
      `${plural(attempts, 'attempt')}, ${plural(crashes, 'worker')} lost on it since.`,
  )
  if (lastError !== null) writer.paragraph({ text: `Last error: ${lastError}`, style: 'bad' })
}

function printEvidence(writer: TextWriter, { run, target, owner, now }: Explanation): void {
  if (owner) {
    const { evidence, assessment, worker } = owner
    writer.paragraph(`${capitalize(assessment.because)}. That is called ${assessment.liveness}.`)
    if (evidence.label === undefined)
      writer.paragraph(
        `Its lock is ${formatPresence(evidence.presence)}; its beats are due every ${humanizeDuration(evidence.heartbeatMs)}, ` +
          `and it counts as silent after ${humanizeDuration(evidence.leaseMs)}. It started ${formatAgo(worker.startedAt, now)}.`,
      )
  } else if (isLive(run.status))
    writer.paragraph(run.adopted ? 'No owner is known.' : 'No worker has it.')
  else writer.paragraph(`${target ? 'Its run' : 'It'} ended ${formatEnd(run, now)}.`)
  const last = (target ?? run).lastActivityAt
  writer.paragraph(`Something of it last changed ${formatAgo(last, now)}.`)
}

function formatEnd({ finishedAt }: Explanation['run'], now: number): string {
  const when = formatAgo(finishedAt, now)
  return when === 'now' ? 'just now' : when
}

function formatPresence(presence: 'held' | 'free' | 'unknown'): string {
  return { held: 'held', free: 'free', unknown: 'not to be seen from here' }[presence]
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
